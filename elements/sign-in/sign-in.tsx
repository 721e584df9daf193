// <ringside-sign-in>: who is signed in on this page, signing in and out.

import { h } from '../base/dom';
import { Part } from '../base/part';
import type { ViewerData } from '../generated/first';
import { SIGN_OUT } from '../generated/sign-in';
import type { Ringside } from '../elements';
import css from './sign-in.css?inline';
import english from 'english:signIn';

export default class SignIn extends Part<ViewerData> {
  protected declare viewer: ViewerData['viewer'] | undefined;
  /** What is said and seen anyway. */
  private declare seen?: string;

  constructor(host: HTMLElement, ringside: Ringside, texts: any) {
    super(host, ringside, texts, 'signIn', english, css);
  }

  protected arrived({ viewer }: ViewerData) {
    const before = this.viewer;
    this.viewer = viewer;
    if (before !== undefined && before?.id !== viewer?.id) {
      this.say((this.seen = viewer ? this.t('welcome', { name: viewer.name }) : this.t('signedOut')));
      this.emit('signed-in', { user: viewer && { id: viewer.id, name: viewer.name } });
    }
    this.render();
  }

  protected signedInOrOut() {
    void this.askAgain();
  }

  /** Ends the session itself: on the service's own origin it is a cookie, which a page cannot drop. */
  private async signOut() {
    const { session } = this.ringside;
    const { authorization } = session;
    await this.mutate(SIGN_OUT, {});
    session.drop(authorization); // not that of somebody else who has signed in meanwhile
  }

  /** The name; leads to the account of whom the service signed in. What changes there is shown on coming back. */
  private account(name: string) {
    const { base, isElsewhere, session } = this.ringside;
    const page = `${base}sign-in?language=${this.language}`;
    const follow = () => {
      const opened = isElsewhere ? open(page, '_blank', 'popup,width=480,height=680') : null;
      const again = () => {
        if (opened!.closed) removeEventListener('focus', again);
        this.askAgain();
      };
      if (opened) addEventListener('focus', again);
      return !opened;
    };
    const shown = <strong dir="auto">{name}</strong>;
    if (/^Bearer (?!rst_)/.test(session.authorization!)) return shown; // a site's token, say
    return <a href={page} target={isElsewhere && '_blank'} part="account" title={this.t('account')} onclick={follow}>{shown}</a>;
  }

  protected view() {
    const { viewer } = this;
    return (
      <div class="row between" part="bar">
        {viewer === undefined ? <span>{this.t('loading')}</span> : viewer ? [
          <span>{this.t('as')} {this.account(viewer.name)}</span>,
          <button type="button" part="button" onclick={() => this.signOut()}>{this.t('signOut')}</button>,
        ] : [<span class="soft">{this.t('visitor')}</span>, this.signInButton()]}
        {this.said && this.said !== this.seen && this.note()}
      </div>
    );
  }
}
