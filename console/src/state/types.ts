// What ACP version 2 sends about a session, as far as the console reads it. All of it was written by an agent: a field may
// be absent, and a word may be one that is not known here.

export type Json = unknown;

export type ContentBlock =
  | { type: "text"; text: string }
  | { type: "image"; data?: string; mimeType: string; uri?: string | null }
  | { type: "audio"; data?: string; mimeType: string }
  | { type: "resource_link"; uri: string; name?: string; title?: string | null; mimeType?: string | null }
  | { type: "resource"; resource?: { uri?: string; text?: string; blob?: string; mimeType?: string | null } };

export interface DiffChange {
  operation?: string;
  path?: string;
  oldPath?: string;
}

/** What is done to which files, and the patch. */
export interface DiffContent {
  type: "diff";
  changes?: DiffChange[];
  patch?: { format?: string; text?: string } | null;
}

export type CallContent =
  | { type: "content"; content: ContentBlock }
  | DiffContent
  | { type: "terminal"; terminalId: string };

/** A tool call with everything that was said of it; what is null was cleared. */
export interface ToolCall {
  toolCallId: string;
  name?: string | null;
  title?: string | null;
  kind?: string | null;
  status?: string | null;
  content?: CallContent[] | null;
  locations?: { path: string; line?: number | null }[] | null;
  rawInput?: Json;
  rawOutput?: Json;
  capabilities?: { cancel?: object | null } | null;
  _meta?: Record<string, unknown> | null;
}

export interface PlanEntry {
  content: string;
  priority?: string;
  status?: string;
}

export type Plan =
  | { planId: string; type: "items"; entries: PlanEntry[] }
  | { planId: string; type: "markdown"; content: string }
  | { planId: string; type: "file"; uri: string };

export interface Choice {
  value: string;
  name: string;
  description?: string | null;
}

export interface ChoiceGroup {
  name: string;
  options: Choice[];
}

export interface Option {
  configId: string;
  name: string;
  description?: string | null;
  category?: string | null;
  type: string;
  currentValue: string | boolean;
  options?: (Choice | ChoiceGroup)[];
}

export interface Command {
  name: string;
  description: string;
  input?: { hint?: string } | null;
}

export interface Cost {
  amount: number;
  currency: string;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  thoughtTokens?: number | null;
  cachedReadTokens?: number | null;
}

/** How full the window of the model is, and what the session has cost. */
export interface Context {
  used?: number;
  size?: number;
  cost?: Cost;
}

/** A row of `session/list`. */
export interface SessionInfo {
  sessionId: string;
  cwd: string;
  title?: string | null;
  updatedAt?: string | null;
  _meta?: Record<string, unknown> | null;
}

export interface PermissionOption {
  optionId: string;
  name: string;
  kind: string;
}

export interface PermissionRequest {
  sessionId?: string;
  title: string;
  description?: string | null;
  options: PermissionOption[];
  subject?: Record<string, any> & { type: string } | null;
}

export interface FormRequest {
  sessionId?: string;
  message: string;
  mode: "form";
  requestedSchema: { properties: Record<string, any>; required?: string[] | null };
}
