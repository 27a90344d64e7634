// A table of texts; on a narrow window it is scrolled sideways, and can be reached by the keyboard for that.

import type { ComponentChildren } from "preact";

interface Props {
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
  label?: string;
}

export function Table({ head, rows, label = head[0]! }: Props) {
  return (
    <div class="table" tabIndex={0} role="region" aria-label={label}>
      <table>
        <thead>
          <tr>{head.map((name) => <th key={name} scope="col">{name}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, number) => (
            <tr key={number}>{row.map((cell, at) => (at === 0 ? <th key={at} scope="row">{cell}</th> : <td key={at}>{cell}</td>))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
