export const mean = (values) => (values.length ? values.reduce((one, other) => one + other, 0) / values.length : null)

export function median(values) {
  if (values.length === 0) return null
  const ordered = [...values].sort((one, other) => one - other)
  const half = ordered.length >> 1
  return ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2
}
