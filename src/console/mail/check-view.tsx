import type { ComponentProps } from "preact"
import { useCallback, useState } from "preact/hooks"
import type { Components } from "../../client/components"
import { Badge, type BadgeTone } from "../parts/badge"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { Waiting } from "../parts/empty"
import { Notice, Trouble } from "../parts/notice"
import { Prose } from "../parts/prose"
import { Table } from "../parts/table"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { counted, programsText, sizeText } from "./describe"
import { checkCommand, type OpenMail } from "./mail-commands"

type MailCheck = Components["MailCheck"]

/** What receivers make of the mail. Servers of its links are asked only when a person wants it. */
export function CheckView({ mail: { id } }: { mail: OpenMail }) {
  const [with_links, setLinks] = useState(false)
  const read = useCallback(async () => {
    const input = { params: { mail_id: id }, body: { links: with_links } }
    return (await call("POST /v1/mailbox/{mail_id}/check", input)).data
  }, [id, with_links])
  const { value: check, error, again } = useLoaded(read)
  if (error !== undefined) return <Trouble error={error} onRetry={again} />
  if (!check)
    return <Waiting text={with_links ? "Asking the servers of the links…" : "Checking…"} />
  return (
    <>
      <Size size={check.size} />
      <Links links={check.links} onAsk={() => setLinks(true)} onAgain={again} />
      <Content content={check.content} />
      <Features features={check.html} />
      <Commands {...checkCommand(id, with_links)} />
    </>
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
    <section>
      <h3>
        Links{" "}
        <Badge tone={dead > 0 ? "bad" : "good"}>
          {dead === 0 ? "no dead link" : counted(dead, "dead link")}
        </Badge>
      </h3>
      {links.length === 0 ? (
        <p class="soft">This mail has no links to ask for.</p>
      ) : (
        <Table
          caption="Links of the mail"
          columns={["Link", "Result"]}
          is_stacked
          rows={links.map(({ url, ...result }) => ({
            id: url,
            cells: [url, <LinkResult key="result" {...result} />],
          }))}
        />
      )}
      <Button onClick={onAgain}>Check again</Button>
    </section>
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
    caption="What filters count, and faults of the markup"
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
  tone: BadgeTone
}

const Findings = ({ title, tone, ...table }: FindingsProps) => (
  <section>
    <h3>
      {title} <Badge tone={tone}>{foundText(table.rows.length)}</Badge>
    </h3>
    {table.rows.length > 0 && <Table {...table} is_stacked />}
  </section>
)

const foundText = (count: number) => (count === 0 ? "nothing found" : `${count} found`)

/** What some programs show in part is no fault yet. */
function toneOf(features: MailCheck["html"]): BadgeTone {
  if (features.length === 0) return "good"
  const is_missing = features.some(({ programs }) =>
    programs.some(({ support }) => support === "no"),
  )
  return is_missing ? "warn" : "plain"
}

type FeaturePrograms = MailCheck["html"][number]["programs"]

/** One column holds both lists: in two, most of each would be empty. */
function Programs({ programs }: { programs: FeaturePrograms }) {
  const namesOf = (support: FeaturePrograms[number]["support"]) =>
    programsText(programs.filter((one) => one.support === support).map(({ name }) => name))
  const [no, partial] = [namesOf("no"), namesOf("partial")]
  return (
    <>
      {no && <p class="programs">Not in {no}</p>}
      {partial && <p class="programs soft">In part in {partial}</p>}
    </>
  )
}
