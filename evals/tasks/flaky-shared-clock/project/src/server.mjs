import { Limiter } from "./limiter.mjs";

const limiter = new Limiter({ limit: 5, windowMs: 1000 });

export function handle(request) {
  return limiter.allows(request.user) ? { status: 200 } : { status: 429 };
}
