import type { LocalTemplate } from "./template-folder"

/** Where a layout has the mail. */
const CONTENT = /\{\{\{\s*content\s*\}\}\}/

/** As deep as the server goes. */
const DEPTH = 5

/** A partial without values of its own. */
const PLAIN_PARTIAL = /\{\{>\s*([a-z0-9][a-z0-9_.-]*)\s*\}\}/g

/**
 * A template with the layout and the partials of its folder written into it, and the variables of its
 * example. A layout is shown around a sample.
 */
export function withNeighbours(
  template: LocalTemplate,
  folder: LocalTemplate[],
): { template: LocalTemplate; variables: Record<string, unknown> } {
  const byName = new Map(folder.map((one) => [one.name, one]))
  const fill = (source: string, file: string, depth = DEPTH): string =>
    source.replace(PLAIN_PARTIAL, (all, name) => {
      const found = depth > 0 ? byName.get(name)?.bodies[file] : undefined
      return found === undefined ? all : fill(found, file, depth - 1)
    })
  const layouts: LocalTemplate[] = []
  let { layout, ...settings } = template.settings
  for (let found = byName.get(layout ?? ""); found && layouts.length < DEPTH; ) {
    layouts.push(found)
    layout = found.settings.layout
    found = byName.get(layout ?? "")
  }
  const bodies = { ...template.bodies }
  for (const [file, own] of Object.entries(template.bodies)) {
    bodies[file] = layouts.reduce(
      (inner, { bodies: frames }) => {
        const frame = frames[file]
        return frame === undefined ? inner : fill(frame, file).replace(CONTENT, () => inner)
      },
      fill(own, file),
    )
  }
  const is_layout = CONTENT.test(bodies["email.html"] ?? "")
  const sample = is_layout ? { content: "<p>Here stands the mail.</p>" } : {}
  return {
    template: { ...template, settings: { ...settings, ...(layout && { layout }) }, bodies },
    variables: { ...sample, ...template.example },
  }
}
