export const mean = (values) => (values.length ? values.reduce((one, other) => one + other, 0) / values.length : null)

export const median = (values) => {
  const ordered = [...values].sort((one, other) => one - other)
  const half = ordered.length >> 1
  return ordered.length ? (ordered.length % 2 ? ordered[half] : (ordered[half - 1] + ordered[half]) / 2) : null
}
