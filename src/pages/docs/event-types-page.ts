import type { Schema } from "../../http/openapi-schemas"
import { html, type Markup, prose } from "../html"
import { codeBlock } from "./frame"
import { type ApiReference, fieldsOf, fieldTable, withoutReferences } from "./reference"

/** One type of event, as an endpoint receives it. */
interface DocEventType {
  type: string
  about: string
  /** Of its `data`. */
  schema: Schema
  /** The whole envelope. */
  example: unknown
}

interface WebhookLike {
  post: {
    summary: string
    requestBody: { content: Record<string, { schema: Schema; example: unknown }> }
  }
}

/** Every type of event, in the order of the registry. */
export const eventTypesOf = ({ description }: ApiReference): DocEventType[] =>
  Object.entries(description.webhooks as Record<string, WebhookLike>).map(([type, { post }]) => {
    const told = post.requestBody.content["application/json"]
    const whole = withoutReferences(told?.schema ?? {}, description)
    const { data = {} } = (whole.properties ?? {}) as Record<string, Schema>
    return { type, about: post.summary, schema: data, example: told?.example }
  })

/** What webhooks, the feed and the stream carry: one page, whose types open one by one. */
export const eventTypesPage = (reference: ApiReference): Markup => {
  const groups = Map.groupBy(eventTypesOf(reference), ({ type }) => type.split(".", 1)[0] ?? "")
  return html`<p class="trail"><a href="/docs">Reference</a></p>
<h1>Event types</h1>
<p>Endpoints receive these events, and <a href="/docs/getEvents">the feed</a> and
<a href="/docs/getEventsStream">the stream</a> have them, too. An endpoint asks for types, for a group such as
<code>email.*</code>, or for <code>*</code>. <a href="/docs/guides/webhooks">The guide to webhooks</a> says how to
receive and check them.</p>
${[...groups].map(
  ([name, types]) => html`
<h2 id="group-${name}">${name}</h2>
${types.map(eventPart)}`,
)}`
}

const eventPart = ({ type, about, schema, example }: DocEventType): Markup => html`
<details id="${type}" class="event"><summary><code>${type}</code></summary>
<p>${prose(about)}</p>
${fieldTable(fieldsOf(schema, "data."), false)}
${codeBlock(JSON.stringify(example, null, 2), `Example of ${type}`)}
</details>`
