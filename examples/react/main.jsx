// React 19 hands attributes to custom elements and listens to their events: the elements need no wrapper.
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

function Page() {
  const [board, setBoard] = useState('main');
  const [last, setLast] = useState(null);
  return (
    <main>
      <label>
        Vote on{' '}
        <select value={board} onChange={(event) => setBoard(event.target.value)}>
          <option value="main">masks</option>
          <option value="finishers">finishers</option>
        </select>
      </label>
      <ringside-board board={board} onringside-vote={({ detail }) => setLast(detail.verdict)} />
      <p id="last">{last ? `Your last verdict: ${last}` : 'No verdict yet'}</p>
    </main>
  );
}

createRoot(document.getElementById('root')).render(<Page />);
