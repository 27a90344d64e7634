export type Day = { readonly date: string; readonly low: number; readonly high: number; readonly rain: number };
export type Forecast = { readonly place: string; readonly days: readonly Day[] };
