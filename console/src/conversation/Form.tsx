// A question that is a form: fields by the schema that the agent sent.

import { useRef } from "preact/hooks";
import type { FormRequest } from "../state/types";
import { visible } from "../text/visible";

interface Props {
  params: FormRequest;
  isAwake: boolean;
  reply: (result: unknown) => void;
}

export function FormQuestion({ params, isAwake, reply }: Props) {
  const form = useRef<HTMLFormElement>(null);
  const { properties, required } = params.requestedSchema;
  const fields = Object.entries(properties);
  const accept = (event: Event) => {
    event.preventDefault();
    if (!isAwake) return;
    const content: Record<string, unknown> = {};
    fields.forEach(([name, property], index) => {
      const value = valueOf(form.current!.querySelector(`[data-field="${index}"]`)!, property, required?.includes(name) ?? false);
      if (value !== undefined) content[name] = value;
    });
    reply({ action: "accept", content });
  };
  return (
    <form class="subject" ref={form} onSubmit={accept}>
      {fields.map(([name, property], index) => (
        <Field key={name} name={name} property={property} index={index} isWanted={required?.includes(name) ?? false} />
      ))}
      <div class="choices">
        <button class="button choice allow" disabled={!isAwake}>Answer</button>
        <button type="button" class="button choice reject" disabled={!isAwake} onClick={() => reply({ action: "decline" })}>
          Do not answer
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  property: any;
  index: number;
  isWanted: boolean;
}

function Field({ name, property, index, isWanted }: FieldProps) {
  return (
    <label class="field">
      {visible(property.title ?? name)}
      {property.description && <span class="muted small">{visible(property.description)}</span>}
      <Input property={property} index={index} isWanted={isWanted} />
    </label>
  );
}

function Input({ property, index, isWanted }: Omit<FieldProps, "name">) {
  const choices = choicesOf(property);
  const preset: unknown[] = [property.default ?? []].flat();
  if (choices) {
    const several = property.type === "array";
    return (
      <select data-field={index} multiple={several} required={isWanted && !several}>
        {choices.map(([value, title]) => (
          <option key={value} value={value} selected={preset.includes(value)}>{visible(title)}</option>
        ))}
      </select>
    );
  }
  if (property.type === "boolean") return <input data-field={index} type="checkbox" defaultChecked={property.default === true} />;
  if (property.type === "number" || property.type === "integer") {
    return (
      <input data-field={index} type="number" step={property.type === "integer" ? "1" : "any"} min={property.minimum}
        max={property.maximum} defaultValue={property.default} required={isWanted} />
    );
  }
  return <input data-field={index} type="text" maxLength={property.maxLength} defaultValue={property.default} required={isWanted} />;
}

function choicesOf(property: any): [string, string][] | undefined {
  const titled = property.oneOf ?? property.items?.anyOf;
  if (titled) return titled.map((one: any) => [one.const, one.title]);
  return (property.enum ?? property.items?.enum)?.map((one: string) => [one, one]);
}

/** What was filled in; undefined where that is nothing. */
function valueOf(input: HTMLInputElement | HTMLSelectElement, property: any, isWanted: boolean): unknown {
  if (input instanceof HTMLSelectElement) {
    return input.multiple ? [...input.selectedOptions].map((option) => option.value) : input.value;
  }
  if (property.type === "boolean") return input.checked;
  if (property.type === "number" || property.type === "integer") return input.value === "" ? undefined : Number(input.value);
  return input.value === "" && !isWanted ? undefined : input.value;
}
