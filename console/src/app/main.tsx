// The entry of the console: mounts the application.

import "./theme.css";
import "./base.css";
import "./frame.css";
import { render } from "preact";
import { App } from "./App";

render(<App />, document.getElementById("root")!);
