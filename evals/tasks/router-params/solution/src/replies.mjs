export function notFound(path) {
  return { status: 404, body: `no ${path}` };
}

export function badRequest(path) {
  return { status: 400, body: `cannot read ${path}` };
}
