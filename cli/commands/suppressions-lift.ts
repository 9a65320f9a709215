import type { Action } from "../lib/context"
import { wasThere } from "../lib/errors"
import { patiently } from "../lib/file-import"
import { given } from "../lib/input"
import { ALL, listUpTo } from "../lib/paging"
import { confirm } from "../lib/prompts"
import { cleanLine } from "../lib/terminal"
import { moment } from "../lib/time"

interface LiftOptions {
  diagnostic: string
  since?: string
}

const SAMPLES = 5

/**
 * Removes the suppressions of bounces whose reply has a text in it. Each goes by its own id: another suppression of
 * the same address, such as one of a category, stays.
 */
export const lift: Action<LiftOptions> = async (context, { diagnostic, since }) => {
  const { output, paint, flags } = context
  output.promises(["found", "lifted", "samples"])
  const created_after = since === undefined ? undefined : moment(since, "--since")
  const query = given({ reason: "bounce", origin: "event", diagnostic, created_after })
  const client = context.client()
  const { rows } = await listUpTo(client, "GET /v1/suppressions", ALL, { query })
  const samples = rows.slice(0, SAMPLES).map(({ address, diagnostic: said }) => ({ address, said }))
  const counted = rows.length === 1 ? "1 suppression" : `${rows.length} suppressions`
  const shown = samples.map(({ address, said }) => `  ${cleanLine(`${address}   ${said}`)}`)
  if (flags.dryRun || rows.length === 0) {
    const text = [`${counted} with "${diagnostic}" in the reply`, ...shown].join("\n")
    await output.record({ found: rows.length, lifted: 0, samples }, () => text)
    return
  }
  if (!flags.yes) await output.note(shown.join("\n"))
  const what = `This removes ${counted}. Mail is sent there again.`
  await confirm(context, what, String(rows.length))
  let lifted = 0
  for (const { id } of rows) {
    const input = { params: { suppression_id: id } }
    const remove = () => client.call("DELETE /v1/suppressions/{suppression_id}", input)
    if (await wasThere(patiently(context, remove))) lifted += 1 // else somebody removed it meanwhile
    output.passing(`${lifted} of ${rows.length}`)
  }
  output.passing("")
  await output.record({ found: rows.length, lifted, samples }, () => {
    return `${paint.green("✓")} lifted ${lifted} of ${counted}`
  })
}
