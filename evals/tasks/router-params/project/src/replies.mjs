export function notFound(path) {
  return { status: 404, body: `no ${path}` };
}
