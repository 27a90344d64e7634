export const mean = (values) => (values.length ? values.reduce((one, other) => one + other, 0) / values.length : null)
