import type { Components } from "../../src/client/components"
import type { Client } from "./client"
import { exits, Failure } from "./errors"
import { listUpTo } from "./paging"
import { CONTENT, inputOf, type LocalTemplate, localForm, withNeighbours } from "./template-folder"

type Template = Components["Template"]

/** What the server has, by name and id. Whole records are read when they are asked for. */
export class KnownTemplates {
  readonly #client: Client
  readonly #ids = new Map<string, string>()
  readonly #names = new Map<string, string>()

  private constructor(client: Client) {
    this.#client = client
  }

  static async read(client: Client): Promise<KnownTemplates> {
    const known = new KnownTemplates(client)
    const { rows } = await listUpTo(client, "GET /v1/templates", Number.MAX_SAFE_INTEGER)
    for (const { id, name } of rows) known.add(id, name)
    return known
  }

  get names(): string[] {
    return [...this.#ids.keys()].sort()
  }

  add(id: string, name: string) {
    this.#ids.set(name, id)
    this.#names.set(id, name)
  }

  lookup = (name: string): string | undefined => this.#ids.get(name)

  nameOf = (id: string): string => this.#names.get(id) ?? id

  idOf = (name: string): string => {
    const id = this.#ids.get(name)
    if (id !== undefined) return id
    const hint = "push the layout too, or correct the name in template.json"
    throw new Failure(exits.not_found, "template_not_found", `There is no layout ${name}.`, {
      hint,
    })
  }

  async local(name: string): Promise<LocalTemplate | undefined> {
    const whole = await this.whole(name)
    return whole && localForm(whole, this.nameOf)
  }

  async whole(name: string): Promise<Template | undefined> {
    const template_id = this.#ids.get(name)
    if (template_id === undefined) return undefined
    const params = { template_id }
    return (await this.#client.call("GET /v1/templates/{template_id}", { params })).data
  }
}

/**
 * Renders the files of a template by the server, with the values of its example. Layouts and partials
 * that stand in the same folder are taken from there, as they are now.
 */
export async function renderFiles(
  client: Client,
  known: KnownTemplates,
  local: LocalTemplate,
  folder: LocalTemplate[],
) {
  const whole = withNeighbours(local, folder)
  const { name: _, ...template } = inputOf(whole, known.idOf)
  const body = { template, variables: { ...sampleFor(whole), ...local.example } }
  const answer = await client.send("POST /v1/templates/render", { body })
  return (answer as { data: Components["RenderedTemplate"] }).data
}

/** A layout is shown around a sample. */
const sampleFor = ({ html }: LocalTemplate) =>
  html !== null && CONTENT.test(html) ? { content: "<p>Here stands the mail.</p>" } : {}
