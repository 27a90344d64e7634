import { notFound } from "./replies.mjs";

export class Router {
  #routes = [];

  add(method, path, handler) {
    const names = [...path.matchAll(/[:*](\w+)/g)].map((found) => found[1]);
    const pattern = new RegExp(`^${path.replace(/:\w+/g, "([^/]+)").replace(/\*\w+/g, "(.*)")}$`);
    this.#routes.push({ method, pattern, names, handler });
  }

  handle(request) {
    for (const route of this.#routes) {
      const found = route.method === request.method && route.pattern.exec(request.path);
      if (found) {
        const params = Object.fromEntries(route.names.map((name, at) => [name, decodeURIComponent(found[at + 1])]));
        return route.handler(request, params);
      }
    }
    return notFound(request.path);
  }
}
