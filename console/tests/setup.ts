// Before each test file: what a test has drawn is taken away behind it.

import { cleanup } from "@testing-library/preact";
import { afterEach } from "vitest";

afterEach(cleanup);
