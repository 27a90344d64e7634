// The application: the login, then the screens.

import { useRoute } from "./router";

export function App() {
  const route = useRoute();
  return <main>{route.screen || "New session"}</main>;
}
