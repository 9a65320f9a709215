import { workflowSchema } from "../../workflows/schema"
import type { Prompt } from "../ai-task"
import { FENCE_RULE, fencedFields } from "../fenced"
import { HANDLEBARS_RULE } from "./draft-template"

const SYSTEM = `You design workflows that send messages of a company to its customers, one at a time.
Answer with one JSON object {"workflow": {…}} that follows the schema, and with nothing else.
Leave out what is marked with ? and not needed. Never write null.
A workflow is {key, name, description?, trigger_schema?, steps}. A key has a-z, 0-9 and hyphens.
trigger_schema is a JSON Schema of type object for the payload that starts the workflow.
It has only the keywords type, properties, required, enum, items and format.
A step is {step_key, name, type, config, position, parent_step_key?, branch_path?: yes or no, conditions?: rule, on_error?: stop or continue}.
There are 1 to 50 steps. Steps of one level run by their position, from 0.
A step within a branch has both branch_path and parent_step_key, which is the step_key of that branch.
The type is one of the following, each with its config.
An email has {subject, html, text?}. A push has {title, body, url?}. An sms has {body}.
An in_app has {title, body?, action_url?, action_label?}. An event has {name, data: object}. A stop has {}.
A delay has a duration, {until: a text that gives a time} or a local time.
A branch has {step_key: of an earlier message, condition: delivered, read, clicked, failed or replied, within?: duration} or {rule}.
A digest has {window: duration or local time, group_by?: path in the payload}.
A throttle has {limit: 1 to 1000, window: duration}.
A duration is {amount, unit: minutes, hours or days}, at most 365 days. A local time is {at: "09:00", days?: ["mon"]}.
A rule is {all: [rule]}, {any: [rule]}, {not: rule} or {field, op, value}.
An op is eq, ne, gt, gte, lt, lte, in, nin, contains, starts_with or exists.
A field is a path such as subscriber.metadata.plan, payload.total or steps.STEP_KEY.status.
Texts know what the data names, payload as {{payload.total}}, and behind a digest {{digest.count}} and digest.items.
${HANDLEBARS_RULE}
${FENCE_RULE}`

const { $defs, ...workflow } = workflowSchema
const ANSWER = {
  ...{ type: "object", additionalProperties: false, required: ["workflow"] },
  ...{ properties: { workflow }, $defs },
}

export const generateWorkflow = (description: string, variables: string[]): Prompt => ({
  version: "generate-workflow-1",
  system: SYSTEM,
  user: fencedFields({ variables: variables.join("\n"), description }),
  schema: { name: "workflow", schema: ANSWER },
  max_output_tokens: 8_000,
})
