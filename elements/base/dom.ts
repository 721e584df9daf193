// A view is a tree of plain objects. `patch` changes a part of the page to it and keeps the nodes that stay, so that
// the focus, selections and running animations stay too. Texts become text nodes and nothing is parsed as HTML.

type Child = Node_ | string | number | null | undefined | false | Child[];

export interface Node_ {
  tag: string;
  props: Record<string, any>;
  children: Node_[];
  text?: string;
  key?: string | number;
  node?: Element | Text;
}
export type View = Node_;

declare global {
  namespace JSX {
    type Element = Node_;
    interface IntrinsicElements {
      [tag: string]: any;
    }
  }
}

const SVG = 'http://www.w3.org/2000/svg';

export function h(tag: string, props: Record<string, any> | null, ...children: Child[]): Node_ {
  props ??= {};
  return { tag, props, children: flat(children), key: props.key };
}

function flat(children: Child[], into: Node_[] = []): Node_[] {
  for (const child of children) {
    if (Array.isArray(child)) flat(child, into);
    else if (child != null && child !== false) into.push(typeof child !== 'object' ? { tag: '#', props: {}, children: [], text: `${child}` } : child);
  }
  return into;
}

/** Changes the children of a node from one view to the next. */
export function patch(parent: Element | ShadowRoot, before: Node_[], after: Node_[], isSvg = false) {
  const keyed = new Map(before.map((old, place) => [name(old, place), old]));
  const kept = after.map((view, place) => {
    const key = name(view, place);
    const old = keyed.get(key);
    if (old?.tag !== view.tag) return null;
    keyed.delete(key);
    return old;
  });
  keyed.forEach((old) => old.node!.remove());
  after.forEach((view, place) => {
    const inSvg = isSvg || view.tag === 'svg';
    const old = kept[place];
    const node = (view.node = old?.node ?? create(view, inSvg));
    if (view === old) {
      // Drawn before and kept by whoever drew it: nothing in it has changed.
    } else if (view.text !== undefined) {
      if (view.text !== old?.text) node.textContent = view.text;
    } else {
      // Children first: a select's value is one of its options.
      patch(node as Element, old?.children ?? [], view.children, inSvg);
      assign(node as HTMLElement, old?.props ?? {}, view.props);
    }
    if (parent.childNodes[place] !== node) parent.insertBefore(node, parent.childNodes[place] ?? null);
  });
}

const name = ({ key, tag }: Node_, place: number) => (key == null ? `${place} ${tag}` : `#${key}`);
const create = ({ tag }: Node_, isSvg: boolean): Element | Text => {
  if (tag === '#') return document.createTextNode('');
  return isSvg ? document.createElementNS(SVG, tag) : document.createElement(tag);
};

function assign(node: any, before: Record<string, any>, after: Record<string, any>) {
  for (const prop in { ...before, ...after }) {
    const value = after[prop];
    if (/^(value$|checked$|on)/.test(prop)) {
      if (node[prop] !== value) node[prop] = value ?? null;
    } else if (prop !== 'key' && value !== before[prop]) {
      if (value == null || value === false) node.removeAttribute(prop);
      else node.setAttribute(prop, value === true ? '' : value);
    }
  }
}
