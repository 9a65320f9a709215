import { ApiError, fail } from "../core/errors"
import type { Workers } from "../core/workers"
import type { TemplateProblem } from "./handlebars"
import { DEADLINE, SOURCE_BYTES } from "./limits"
import type { TemplateText } from "./template-sources"
import { threadProblem } from "./transform"
import type { TemplateFacts, UsedNames } from "./validate-template-task"

/**
 * Reads the texts in a thread of the pool. Throws 422 `invalid_template` for the first mistake, with
 * field, line and column, and the place in the text with a caret below it.
 */
export async function validateTexts(workers: Workers, texts: TemplateText[]): Promise<UsedNames> {
  for (const { field, source } of texts) refuseLarge(field, source)
  const facts = await ask(workers, texts)
  if ("problem" in facts) {
    const { field, excerpt, ...problem } = facts.problem
    throw invalidTemplate(field, problem, excerpt)
  }
  return facts
}

function refuseLarge(field: string, source: string): void {
  const bytes = Buffer.byteLength(source)
  if (bytes <= SOURCE_BYTES) return
  const message = `The text has ${bytes} bytes, but at most ${SOURCE_BYTES} are allowed.`
  throw invalidTemplate(field, { reason: "too_large", message, line: null, column: null })
}

async function ask(workers: Workers, texts: TemplateText[]): Promise<TemplateFacts> {
  try {
    return await workers.run("validate-template", texts, DEADLINE)
  } catch (error) {
    const { message } = threadProblem(error, ["Reading the template", "read"])
    return fail("invalid_template", message, { field: "body", line: null, column: null, message })
  }
}

/** 422 with the place of the mistake. The excerpt has a caret below the place. */
export function invalidTemplate(
  field: string,
  { reason, message, line, column }: TemplateProblem,
  excerpt: string | null = null,
): ApiError {
  const place = line === null ? "" : ` (line ${line}${column === null ? "" : `, column ${column}`})`
  const shown = excerpt === null ? "" : `\n${excerpt}`
  const details = { field, reason, line, column, message, excerpt }
  return new ApiError("invalid_template", `${field}: ${message}${place}${shown}`, details)
}
