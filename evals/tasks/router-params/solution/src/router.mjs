import { badRequest, notFound } from "./replies.mjs";

export class Router {
  #routes = [];

  add(method, path, handler) {
    this.#routes.push({ method, parts: path.split("/"), handler });
    this.#routes.sort((one, other) => rank(one.parts) - rank(other.parts));
  }

  /** Answer a request: {method, path}. */
  handle(request) {
    const given = request.path.split("/");
    for (const route of this.#routes) {
      const found = route.method === request.method && match(route.parts, given);
      if (!found) continue;
      try {
        for (const name in found) found[name] = decodeURIComponent(found[name]);
      } catch {
        return badRequest(request.path);
      }
      return route.handler(request, found);
    }
    return notFound(request.path);
  }
}

function rank(parts) {
  if (parts.some((part) => part.startsWith("*"))) return 2;
  return parts.some((part) => part.startsWith(":")) ? 1 : 0;
}

function match(parts, given) {
  const params = {};
  for (const [at, part] of parts.entries()) {
    if (part.startsWith("*")) {
      params[part.slice(1)] = given.slice(at).join("/");
      return given.length > at ? params : null;
    }
    if (part.startsWith(":") ? !given[at] : part !== given[at]) return null;
    if (part.startsWith(":")) params[part.slice(1)] = given[at];
  }
  return parts.length === given.length ? params : null;
}
