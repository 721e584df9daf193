// All streams of a page come over one WebSocket, which is open while the page is visible.

import type { Session } from './service';

interface Stream {
  parameters: { variables: any };
  take: (data: any) => void;
  state?: (isLive: boolean) => void;
  /** Whether it is going to be asked for again: what comes until then may be later than what is missing. */
  waits?: boolean;
}

export default (api: URL, session: Session) => {
  const streams = new Map<string, Stream>();
  let socket: WebSocket | null = null;
  let isReady = false;
  let pause = 1;
  let count = 0;
  /** How many streams the socket takes, which is closed with one more: the others of a page are not live. */
  let most = 32;

  const tell = (message: object) => socket!.send(JSON.stringify(message));
  const subscribe = (id: string, stream: Stream) => {
    stream.waits = false;
    stream.state?.(true);
    tell({ id, type: 'subscribe', payload: { query: '', ...stream.parameters } });
  };

  function connect() {
    if (socket || !streams.size || document.hidden) return;
    const opened = (socket = new WebSocket(String(api).replace('http', 'ws'), 'graphql-transport-ws'));
    const Authorization = session.authorization;
    opened.onopen = () => tell({ type: 'connection_init', payload: { Authorization } });
    opened.onmessage = ({ data }) => {
      const { type, id, payload } = JSON.parse(data);
      if (type === 'connection_ack') {
        pause = 1;
        isReady = true;
        [...streams].slice(0, most).forEach((each) => subscribe(...each));
      }
      const stream = streams.get(id);
      if (!payload || !stream || stream.waits) return;
      const problem = (payload.errors ?? payload)[0]; // what is refused has a list of errors as its payload
      if (problem) {
        // An event that is not whole is asked for again, behind the last one that was. At a limit, say, there may be room
        // in a while. Another socket has asked again by itself.
        const { retryAfterSeconds } = problem.extensions;
        const wait = payload.errors ? (retryAfterSeconds ?? 30) : retryAfterSeconds && 30;
        stream.waits = true;
        stream.state?.(false);
        tell({ id, type: 'complete' });
        if (wait) setTimeout(() => socket === opened && streams.has(id) && subscribe(id, stream), wait * (1000 + Math.random() * 500));
        return;
      }
      const after = payload.extensions?.eventId;
      if (after) stream.parameters.variables.after = after;
      if (payload.data) stream.take(payload.data);
    };
    opened.onclose = ({ code }) => {
      socket = null;
      // Refused from the start: a token whose rights have changed since still counts, and is sent again.
      if (code === 4403 && !isReady) session.drop(Authorization);
      if (code === 4429) most = most >> 1 || 1; // a service that takes fewer
      isReady = false;
      streams.forEach(({ state }) => state?.(false));
      setTimeout(connect, pause * (500 + Math.random() * 500));
      pause = Math.min(pause * 2, 60);
    };
  }

  function close() {
    isReady = false;
    socket?.close();
  }

  document.addEventListener('visibilitychange', () => (document.hidden ? close() : connect()));
  // As another member, or as a visitor who has voted, other events are visible.
  session.addEventListener('change', close);
  session.addEventListener('renew', close);

  return (stream: Stream) => {
    const id = String(count++);
    streams.set(id, stream);
    if (!isReady) connect();
    else if (streams.size <= most) subscribe(id, stream);
    return () => {
      streams.delete(id);
      if (isReady) tell({ id, type: 'complete' });
      setTimeout(() => streams.size || close()); // an element that asks for another stream does so at once
    };
  };
};
