// The icons of the console: strokes in the colour of the text beside them. An icon alone says nothing; its button has a
// label.

const PATHS = {
  menu: "M3 5h14M3 10h14M3 15h14",
  plus: "M10 4v12M4 10h12",
  send: "M10 16V4M5 9l5-5 5 5",
  later: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14M10 6v4l3 2",
  stop: "M6 6h8v8H6z",
  close: "M5 5l10 10M15 5L5 15",
  check: "M4 10.5l4 4 8-9",
  copy: "M7 7V4h9v9h-3M4 7h9v9H4z",
  back: "M8 5L3 10l5 5M3 10h9a5 5 0 0 1 5 5",
  edit: "M4 16l1-4 8.5-8.5 3 3L8 15z",
  fork: "M6 4v12M6 9c5 0 8-1 8-5M14 4v.01M6 16v.01",
  attach: "M14 8l-5.5 5.5a2 2 0 0 1-3-3L12 4a3 3 0 0 1 4.5 4.5L9.5 15",
  chevron: "M7 5l5 5-5 5",
  down: "M10 4v12M5 11l5 5 5-5",
  read: "M4 4h5a1 1 0 0 1 1 1v11H5a1 1 0 0 1-1-1zM16 4h-5a1 1 0 0 0-1 1v11h5a1 1 0 0 0 1-1z",
  search: "M9 4a5 5 0 1 1 0 10A5 5 0 0 1 9 4M13 13l3.5 3.5",
  execute: "M4 5l5 5-5 5M10 15h6",
  fetch: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14M3 10h14M10 3c-4 4-4 10 0 14M10 3c4 4 4 10 0 14",
  think: "M6 12a5 5 0 1 1 8 0c-1 1-1 2-1 3H7c0-1 0-2-1-3M8 17h4",
  delete: "M4 6h12M8 6V4h4v2M6 6l1 11h6l1-11",
  move: "M4 10h12M11 5l5 5-5 5",
  tool: "M12 4a4 4 0 0 0-3 6l-5 5 1.5 1.5 5-5a4 4 0 0 0 6-5l-2.5 2-2-2z",
  agent: "M5 8h10v8H5zM10 8V4M8 12v.01M12 12v.01",
  folder: "M3 5h5l2 2h7v9H3z",
  logout: "M8 4H4v12h4M12 6l4 4-4 4M16 10H8",
  warning: "M10 3l7.5 13h-15zM10 8v4M10 14v.01",
  info: "M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14M10 9v5M10 6v.01",
  plan: "M4 5l1 1 2-2M4 10l1 1 2-2M4 15l1 1 2-2M10 5h6M10 10h6M10 15h6",
  download: "M10 3v10M5 9l5 5 5-5M4 17h12",
  share: "M14 6a2 2 0 1 0-.01 0M6 12a2 2 0 1 0-.01-4A2 2 0 0 0 6 12M14 18a2 2 0 1 0 0-4 2 2 0 0 0 0 4M8 9l4-3M8 11l4 3",
  more: "M5 10v.01M10 10v.01M15 10v.01",
  beside: "M4 4h5v12H4zM11 4h5v12h-5z",
  inbox: "M3 11l3-7h8l3 7v5H3zM3 11h4l1 2h4l1-2h4",
  list: "M4 5h12M4 10h12M4 15h8",
  gear: "M10 7a3 3 0 1 1 0 6 3 3 0 0 1 0-6M10 3v2M10 15v2M3 10h2M15 10h2M5 5l1.5 1.5M13.5 13.5L15 15M15 5l-1.5 1.5M6.5 13.5L5 15",
  shield: "M10 3l6 2v5c0 4-3 6-6 7-3-1-6-3-6-7V5z",
  retry: "M16 10a6 6 0 1 1-2-4.5M16 3v4h-4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 20 }: { name: IconName; size?: number }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" width={size} height={size} aria-hidden="true" fill="none" stroke="currentColor"
      stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The product's mark. */
export function Mark({ size = 28 }: { size?: number }) {
  return (
    <svg class="icon mark" viewBox="0 0 32 32" width={size} height={size} aria-hidden="true" fill="none">
      <rect width="32" height="32" rx="8" fill="var(--accent)" />
      <path d="M9 8h6a8 8 0 0 1 0 16H9z" stroke="var(--on-accent)" stroke-width="3" />
      <circle cx="24" cy="23" r="2" fill="var(--on-accent)" />
    </svg>
  );
}
