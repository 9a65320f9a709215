import { ApiError, type Problem, Problems } from "../core/errors"
import type { Workers } from "../core/workers"
import { readAddress } from "../emails/fields"
import { AUDIENCE_CHANNELS } from "../lib/preferences"
import { reservedProblem } from "../lib/reserved-names"
import { flattened, type TemplateText } from "../templates/template-sources"
import { validateTexts } from "../templates/validate-template"
import { checkForm, type Duration, type WorkflowInput, type WorkflowStep } from "./schema"

const MINUTES = { minutes: 1, hours: 60, days: 24 * 60 }
const MOST_MINUTES = 365 * MINUTES.days
const MOST_DATA_BYTES = 16_384

interface Checked {
  problems: Problem[]
  /** Names that the texts of the workflow use, sorted. */
  names: string[]
}

/** Checks a workflow by contract 44, section 2. The texts are compiled in a thread of the pool. */
export async function checkWorkflow(workers: Workers, workflow: unknown): Promise<Checked> {
  const problems = new Problems()
  checkForm(workflow, problems)
  if (problems.any) return { problems: problems.list, names: [] }
  const { key, steps } = workflow as WorkflowInput
  if (areTree(steps, problems)) checkPaths(steps, problems)
  const reserved = reservedProblem(key)
  if (reserved) problems.add("key", "reserved", reserved)
  steps.forEach((step, at) => void checkConfig(step, `steps.${at}.config`, problems))
  // What is too large is not read, either.
  const names = problems.any ? [] : await checkTexts(workers, steps, problems)
  return { names, problems: problems.list }
}

/** What a schema does not say of the config of one step. */
function checkConfig(step: WorkflowStep, path: string, problems: Problems) {
  const { config } = step
  const { from, within, window, data } = config
  // A subject alone is no email, and a sender alone is no message.
  const is_empty = Object.keys(config).every((name) => name === "from" || name === "subject")
  if (isMessage(step) && is_empty)
    problems.add(path, "required", "A message needs a template_id, or texts of its own.")
  if (from !== undefined) readAddress(from, `${path}.from`, problems)
  for (const [at, time] of Object.entries({ "": config, ".within": within, ".window": window })) {
    const { amount = 0, unit = "days" } = (time ?? {}) as Partial<Duration>
    if (amount * MINUTES[unit] > MOST_MINUTES)
      problems.add(`${path}${at}.amount`, "invalid", "The time must be at most 365 days.")
  }
  if (step.type === "event" && Buffer.byteLength(JSON.stringify(data)) > MOST_DATA_BYTES) {
    const message = `The value must have at most ${MOST_DATA_BYTES} bytes as JSON.`
    problems.add(`${path}.data`, "too_large", message)
  }
}

const isMessage = ({ type }: WorkflowStep) => AUDIENCE_CHANNELS.some((one) => one === type)

/** Whether each step has a key of its own, and a branch as its parent. Without that, paths could not be followed. */
function areTree(steps: WorkflowStep[], problems: Problems): boolean {
  const branches = new Set(steps.flatMap((step) => (step.type === "branch" ? step.step_key : [])))
  const keys = new Set<string>()
  for (const [at, { step_key, parent_step_key, branch_path }] of steps.entries()) {
    const add = (name: string, message: string) =>
      problems.add(`steps.${at}.${name}`, "invalid", message)
    if (keys.has(step_key)) add("step_key", "Another step has this key.")
    keys.add(step_key)
    if (parent_step_key != null && !branches.has(parent_step_key))
      add("parent_step_key", "The value must be the step_key of a step of type branch.")
    if ((parent_step_key == null) !== (branch_path === undefined))
      add("branch_path", "Give branch_path with parent_step_key, and only then.")
  }
  return !problems.any
}

/** Follows every path in the order of its steps. What none reaches has itself among its parents, and would never end. */
function checkPaths(steps: WorkflowStep[], problems: Problems): void {
  const add = (step: WorkflowStep, name: string, message: string) =>
    problems.add(`steps.${steps.indexOf(step)}.${name}`, "invalid", message)
  const ordered = steps.toSorted((one, other) => one.position - other.position)
  const levels = Map.groupBy(ordered, (step) => levelOf(step.parent_step_key, step.branch_path))
  const reached = follow(levelOf(), [])
  for (const step of steps) {
    if (!reached.includes(step))
      add(step, "parent_step_key", "No path leads to this step: its parents form a circle.")
  }

  /** The steps until the end of the level. One path of a branch knows nothing of the other one. */
  function follow(level: string, before: WorkflowStep[]): WorkflowStep[] {
    let earlier = before
    for (const step of levels.get(level) ?? []) {
      const { step_key } = step.config
      const is_earlier = earlier.some((one) => one.step_key === step_key && isMessage(one))
      if (step_key !== undefined && !is_earlier)
        add(step, "config.step_key", "The value must be the step_key of an earlier message step.")
      const here = [...earlier, step]
      const inside = ["yes", "no"].flatMap((path) =>
        follow(levelOf(step.step_key, path), here).slice(here.length),
      )
      earlier = [...here, ...inside]
    }
    return earlier
  }
}

const levelOf = (parent?: string | null, path?: string) => (parent ? `${parent} ${path}` : "")

/** The words of a schema among them compile to themselves. */
function textsOf({ config }: WorkflowStep, path: string): TemplateText[] {
  const { template_id, from, name, rule, ...texts } = config
  return flattened(texts).map(([part, source]) => {
    return { field: `${path}.${part}`, part, mode: part === "html" ? "html" : "text", source }
  })
}

/** Adds the first mistake of each step. Gives the names that the texts use. */
async function checkTexts(workers: Workers, steps: WorkflowStep[], problems: Problems) {
  const names = new Set<string>()
  for (const [at, step] of steps.entries()) {
    try {
      const used = await validateTexts(workers, textsOf(step, `steps.${at}.config`))
      for (const name of used.names) names.add(name)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== "invalid_template") throw error
      const { field, message } = error.details as { field: string; message: string }
      problems.add(field, "invalid_template", message)
    }
  }
  return [...names].sort()
}
