import { fail } from "../core/errors"
import { log } from "../core/log"
import type { Workers } from "../core/workers"
import { problemIn, renderText } from "../templates/render"

/**
 * Refuses a transform that can never render (`invalid_template`, with `line` and `column` where
 * they are known). Whether it gives JSON is only seen with an event.
 */
export async function checkTransform(workers: Workers, source: string): Promise<void> {
  const problem = await problemIn(workers, "json", source)
  if (!problem) return
  const { reason, message, line, column } = problem
  const place = line === null ? "" : ` (line ${line})`
  const details = { field: "transform", reason, line, column }
  fail("invalid_template", `The transform is not a valid template: ${message}${place}`, details)
}

/**
 * The body that the transform makes of an envelope: Handlebars in which `{{x}}` is escaped for the
 * inside of a JSON string and `{{json x}}` writes a whole value. Undefined when it does not give a
 * JSON body, for whatever reason of its own. Rejects with `service_unavailable` when it was not
 * tried: then the delivery has to wait, not to leave as the plain envelope.
 */
export async function render(
  workers: Workers,
  source: string,
  envelope: object,
): Promise<string | undefined> {
  const rendered = await renderText(workers, "json", source, envelope)
  if ("problem" in rendered) {
    log.info("a transform could not be rendered", { reason: rendered.problem.reason })
    return undefined
  }
  const body = rendered.text.trim()
  return isJson(body) ? body : undefined
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
