// Solves a challenge of the service: finds the number whose SHA-256, after the salt, is the target. With a hash of its
// own, since a browser's answers only later, each time, and only on pages of https.

const MOST = 250000;
const TURN = 5000; // numbers between two moments for the page

const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every(prime => n % prime)) primes.push(n);
const fraction = root => ((root - Math.floor(root)) * 4294967296) | 0;
const K = primes.map(prime => fraction(Math.cbrt(prime)));
const START = primes.slice(0, 8).map(prime => fraction(Math.sqrt(prime)));
const words = new Int32Array(64);

// The words of the hash of a text of at most 55 letters of ASCII: one block.
function hash(text) {
  words.fill(0, 0, 16);
  for (let i = 0; i < text.length; i++) words[i >> 2] |= text.charCodeAt(i) << (24 - 8 * (i & 3));
  words[text.length >> 2] |= 128 << (24 - 8 * (text.length & 3));
  words[15] = text.length * 8;
  for (let i = 16; i < 64; i++) {
    const x = words[i - 15], y = words[i - 2];
    const small = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const large = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    words[i] = words[i - 16] + small + words[i - 7] + large;
  }
  let [a, b, c, d, e, f, g, h] = START;
  for (let i = 0; i < 64; i++) {
    const large = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const first = (h + large + ((e & f) ^ (~e & g)) + K[i] + words[i]) | 0;
    const small = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const second = (small + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
  }
  return [a, b, c, d, e, f, g, h].map((word, i) => (word + START[i]) | 0);
}

// What to send as `solution`.
export async function solve({ token, salt, target }) {
  const wanted = target.match(/.{8}/g).map(word => parseInt(word, 16) | 0);
  for (let number = 0; number < MOST; number++) {
    if (number % TURN === 0) await new Promise(resolve => setTimeout(resolve));
    if (hash(salt + number).every((word, i) => word === wanted[i])) return `${token}:${number}`;
  }
  throw new Error('no number solves this challenge');
}
