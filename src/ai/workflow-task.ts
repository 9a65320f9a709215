import { fail } from "../core/errors"
import type { Workers } from "../core/workers"
import { isObject } from "../http/validate"
import type { Caller } from "../identity/caller"
import type { Store } from "../store/store"
import { checkWorkflow } from "../workflows/check-workflow"
import type { WorkflowInput } from "../workflows/schema"
import { activeContent } from "./active-content"
import type { AiTask } from "./ai-task"
import { projectContext } from "./project-context"
import { generateWorkflow } from "./prompts/generate-workflow"
import { withKnownVariables } from "./variable-check"

/** Asks for a workflow from a description. Nothing is stored. */
export async function workflowTask(
  { store, workers }: { store: Store; workers: Workers },
  caller: Caller,
  { description }: { description: string },
): Promise<AiTask> {
  const { known, shown } = await projectContext(store.read, caller.project_id)
  return {
    action: "generate_workflow",
    prompt: generateWorkflow(description, shown),
    async read(output) {
      const given = (isObject(output) && output.workflow) || null
      const names = [...known, "digest", ...payloadNames(given)]
      const { made, variables } = await withKnownVariables(names, (fix) =>
        checked(workers, inEachText(given, fix)),
      )
      return { complete: { workflow: made.workflow }, variables }
    },
  }
}

/** What triggers the workflow has these fields; without a schema it has any. */
function payloadNames(workflow: unknown): string[] {
  const schema = isObject(workflow) ? workflow.trigger_schema : undefined
  const properties = isObject(schema) ? schema.properties : undefined
  if (!isObject(properties)) return ["payload"]
  return Object.keys(properties).map((name) => `payload.${name}`)
}

/** `fix` changes what is between braces, so the other texts stay as they are. */
const inEachText = (workflow: unknown, fix: (text: string) => string): unknown =>
  JSON.parse(JSON.stringify(workflow), (_, value) =>
    typeof value === "string" ? fix(value) : value,
  )

/** Throws 502 `ai_workflow_invalid` with each mistake of the model. */
async function checked(workers: Workers, given: unknown) {
  const { problems, names } = await checkWorkflow(workers, given)
  const workflow = given as WorkflowInput
  for (const [at, { config }] of (problems.length > 0 ? [] : workflow.steps).entries()) {
    const active = typeof config.html === "string" && activeContent(config.html)
    if (!active) continue
    const message = `The AI model wrote ${active}, which is refused.`
    problems.push({ path: `steps.${at}.config.html`, code: "invalid_template", message })
  }
  if (problems.length === 0) return { workflow, names }
  const message = "The AI model wrote a workflow that is not valid. Ask again."
  return fail("ai_workflow_invalid", message, { fields: problems })
}
