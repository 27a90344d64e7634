import { notFound } from "./replies.mjs";

export class Router {
  #routes = [];

  add(method, path, handler) {
    this.#routes.push({ method, path, handler });
  }

  /** Answer a request: {method, path}. */
  handle(request) {
    const route = this.#routes.find((one) => one.method === request.method && one.path === request.path);
    return route ? route.handler(request) : notFound(request.path);
  }
}
