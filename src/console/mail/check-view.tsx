import type { ComponentChildren, ComponentProps } from "preact"
import { useCallback, useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { Button } from "../parts/button"
import { Commands } from "../parts/code-block"
import { Badge, Loaded, Notice, Prose, type Tone } from "../parts/notice"
import { Table } from "../parts/table"
import { call } from "../transport"
import { counted, programsText, sizeText } from "./describe"
import { checkCommand, type OpenMail } from "./mail-commands"

type MailCheck = Components["MailCheck"]

/** What receivers make of the mail. Servers of its links are asked only when a person wants it. */
export function CheckView({ mail: { id } }: { mail: OpenMail }) {
  const [links, setLinks] = useState(false)
  const load = useCallback(async () => {
    const input = { params: { mail_id: id }, body: { links } }
    return (await call("POST /v1/mailbox/{mail_id}/check", input)).data
  }, [id, links])
  return (
    <Loaded load={load} waiting={links ? "Asking the servers of the links…" : "Checking…"}>
      {(check, again) => (
        <>
          <Size size={check.size} />
          <Links links={check.links} onAsk={() => setLinks(true)} onAgain={again} />
          <Content content={check.content} />
          <Features features={check.html} />
          <Commands {...checkCommand(id, links)} />
        </>
      )}
    </Loaded>
  )
}

const Size = ({ size: { bytes, html_bytes, clipped } }: { size: MailCheck["size"] }) => (
  <Notice tone={clipped ? "warn" : "good"}>
    <p>
      The mail is {sizeText(bytes)}, its HTML {sizeText(html_bytes)}.{" "}
      {clipped
        ? "Gmail shows only the first 102 KB of HTML, and cuts the rest off."
        : "No mail program cuts it off."}
    </p>
  </Notice>
)

interface LinksProps extends Pick<MailCheck, "links"> {
  onAsk: () => void
  onAgain: () => void
}

function Links({ links, onAsk, onAgain }: LinksProps) {
  if (links === null)
    return (
      <section>
        <h3>Links</h3>
        <p class="soft">
          Nobody asked the servers of the links yet. Links that unsubscribe are never asked.
        </p>
        <Button onClick={onAsk}>Check the links</Button>
      </section>
    )
  const dead = links.filter(({ ok }) => ok === false).length
  return (
    <Findings
      title="Links"
      tone={dead > 0 ? "bad" : "good"}
      found={dead === 0 ? "no dead link" : counted(dead, "dead link")}
      caption="Links of the mail"
      columns={["Link", "Result"]}
      rows={links.map(({ url, ...result }) => ({
        id: url,
        cells: [url, <LinkResult key="result" {...result} />],
      }))}
    >
      {links.length === 0 && <p class="soft">This mail has no links to ask for.</p>}
      <Button onClick={onAgain}>Check again</Button>
    </Findings>
  )
}

type CheckedLink = NonNullable<MailCheck["links"]>[number]

function LinkResult({ ok, status, error }: Omit<CheckedLink, "url">) {
  if (ok) return <Badge tone="good">answers {status}</Badge>
  return (
    <>
      <Badge tone={ok === null ? "plain" : "bad"}>{ok === null ? "not known" : "dead"}</Badge>{" "}
      {error ?? (status !== null && `The server answered ${status}.`)}
    </>
  )
}

const Content = ({ content }: { content: MailCheck["content"] }) => (
  <Findings
    title="Content"
    tone={content.length > 0 ? "warn" : "good"}
    caption="Signs of spam, and faults of the markup"
    columns={["Rule", "Detail"]}
    rows={content.map(({ rule, detail }, at) => ({
      id: `${at} ${rule}`,
      cells: [<code key="rule">{rule}</code>, <Prose key="detail" text={detail} />],
    }))}
  />
)

const Features = ({ features }: { features: MailCheck["html"] }) => (
  <Findings
    title="Mail programs"
    tone={toneOf(features)}
    caption="Features of the HTML that some mail programs do not show"
    columns={["Feature", "Programs"]}
    rows={features.map(({ feature, count, programs }) => ({
      id: feature,
      cells: [
        <>
          <code>{feature}</code> <span class="soft">{counted(count, "use")}</span>
        </>,
        <Programs key="programs" programs={programs} />,
      ],
    }))}
  />
)

interface FindingsProps extends ComponentProps<typeof Table> {
  title: string
  tone: Tone
  found?: string
  children?: ComponentChildren
}

function Findings({ title, tone, found, children, ...table }: FindingsProps) {
  const count = table.rows.length
  return (
    <section>
      <h3>
        {title}{" "}
        <Badge tone={tone}>{found ?? (count === 0 ? "nothing found" : `${count} found`)}</Badge>
      </h3>
      {count > 0 && <Table {...table} is_stacked />}
      {children}
    </section>
  )
}

/** What some programs show in part is no fault yet. */
function toneOf(features: MailCheck["html"]): Tone {
  if (features.length === 0) return "good"
  const all = features.flatMap(({ programs }) => programs)
  return all.some(({ support }) => support === "no") ? "warn" : "plain"
}

/** One column holds both lists: in two, most of each would be empty. */
function Programs({ programs }: Pick<MailCheck["html"][number], "programs">) {
  const { no = [], partial = [] } = Object.groupBy(programs, ({ support }) => support)
  const namesOf = (some: typeof no) => programsText(some.map(({ name }) => name))
  return (
    <>
      {no.length > 0 && <p class="programs">Not in {namesOf(no)}</p>}
      {partial.length > 0 && <p class="programs soft">In part in {namesOf(partial)}</p>}
    </>
  )
}
