// The small plot of strengths: each with its interval, on one scale.

import { h } from '../base/dom';
import type { Part } from '../base/part';

interface Strength {
  value: number;
  low: number;
  high: number;
}

export function range(rows: { strength: Strength | null }[]) {
  const known = rows.flatMap(({ strength }) => strength ?? []);
  return { low: Math.min(0, ...known.map(({ low }) => low)), high: Math.max(0, ...known.map(({ high }) => high)) };
}

const place = (value: number, low: number, high: number) => 4 + (96 * (value - low)) / (high - low || 1);

export function interval({ t, number }: Part<any>, strength: Strength | null, low: number, high: number) {
  const x = (value: number) => place(value, low, high).toFixed(1);
  const two = (value: number) => number(value, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
  const label = strength
    ? t('interval', { value: two(strength.value), low: two(strength.low), high: two(strength.high) })
    : t('unknown');
  return (
    <svg viewBox="0 0 104 16" role="img" aria-label={label}>
      {strength && [
        <line x1={x(0)} x2={x(0)} y1="1" y2="15" />,
        <line class="span" x1={x(strength.low)} x2={x(strength.high)} y1="8" y2="8" />,
        <circle cx={x(strength.value)} cy="8" r="3.5" />,
      ]}
    </svg>
  );
}

/** The numbers above the column: zero, which is the average contender, and some steps to both sides. */
export function axis({ t, number }: Part<any>, low: number, high: number) {
  const step = [0.25, 0.5, 1, 2, 5, 10].find((size) => (high - low) / size <= 5) ?? 20;
  const steps = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
    const x = place(value, low, high);
    if (x >= 8 && x <= 96) steps.push({ x: x.toFixed(1), value: value || 0 });
  }
  const one = { maximumFractionDigits: 1 };
  return (
    <svg viewBox="0 0 104 16" role="img" aria-label={t('scale', { low: number(low, one), high: number(high, one) })}>
      {steps.map(({ x, value }) => [<text x={x} y="9">{number(value)}</text>, <line x1={x} x2={x} y1="12" y2="16" />])}
    </svg>
  );
}
