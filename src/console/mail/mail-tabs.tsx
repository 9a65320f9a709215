import type { FunctionComponent } from "preact"
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks"
import { imageType } from "../../lib/image-type"
import { saveBytes } from "../browser"
import { useLoaded, useMedia, useObservable, usePoll, useWidth } from "../hooks"
import { observable } from "../observable"
import { Button } from "../parts/button"
import { Commands, REACHABLE } from "../parts/code-block"
import { Badge, Loaded, Trouble } from "../parts/notice"
import { Tabs } from "../parts/tabs"
import { call } from "../transport"
import { CheckView } from "./check-view"
import { sizeText } from "./describe"
import { explainHeaders, senderFacts } from "./explain-headers"
import { type OpenMail, type TabName, tabCommand } from "./mail-commands"
import { useMailboxKeys } from "./mail-list"
import {
  type RemoteParts,
  remoteParts,
  remoteText,
  type SourceLine,
  sourceLines,
  textPieces,
  withoutOwnPixel,
} from "./readable-parts"
import { TimelineView } from "./timeline-view"

interface TabProps {
  mail: OpenMail
  again: () => Promise<void>
}

interface TabRow {
  name: TabName
  text: string
  View: FunctionComponent<TabProps>
  count?: number
}

function tabsOf({ html, attachments: { length: count }, email_id }: OpenMail): TabRow[] {
  const all: (TabRow | false)[] = [
    html !== null && { name: "html", text: "HTML", View: HtmlView },
    { name: "text", text: "Text", View: TextView },
    { name: "source", text: "Source", View: SourceView },
    { name: "headers", text: "Headers", View: HeadersView },
    count > 0 && { name: "attachments", text: "Files", View: FilesView, count },
    { name: "check", text: "Check", View: CheckView },
    email_id !== null && { name: "timeline", text: "Timeline", View: TimelineView },
  ]
  return all.filter((tab) => tab !== false)
}

/** The views of a mail: the one that was chosen last opens first. */
export function MailTabs(props: TabProps) {
  const { mail } = props
  const choice = useObservable(view_choice)
  const tabs = tabsOf(mail)
  const chosen = tabs.findIndex(({ name }) => name === choice.tab)
  const at = Math.max(0, chosen)
  const { name, View } = tabs[at] as TabRow
  const turn = (by: number) => changeView({ tab: tabs.at((at + by) % tabs.length)?.name })
  useMailboxKeys({ next_tab: () => turn(1), previous_tab: () => turn(-1) })
  return (
    <Tabs
      label="Views of the mail"
      tabs={tabs}
      chosen={name}
      onChoose={(tab) => changeView({ tab })}
    >
      <View {...props} />
      {name !== "check" && <Commands {...tabCommand(name, mail)} />}
    </Tabs>
  )
}

const WIDTHS = [
  { name: "phone", text: "Phone", pixels: 390 },
  { name: "tablet", text: "Tablet", pixels: 768 },
  { name: "desktop", text: "Desktop", pixels: 1200 },
  { name: "fit", text: "Fit", pixels: undefined },
] as const

/** How a person looks at mails: it stays from one mail to the next, until the page is left. */
interface ViewChoice {
  /** Undefined: the HTML, or the text of a mail without it. */
  tab: TabName | undefined
  width: (typeof WIDTHS)[number]["name"]
  is_dark: boolean
}

const view_choice = observable<ViewChoice>({ tab: undefined, width: "fit", is_dark: false })

const changeView = (change: Partial<ViewChoice>): void =>
  view_choice.set({ ...view_choice.value, ...change })

/** The address of the HTML is valid for ten minutes; a mail that stays open gets a new one before. */
const RENEWAL_MILLISECONDS = 9 * 60_000

/**
 * The HTML in a frame: no script, no form, no network, an origin of its own. Only a link that somebody presses
 * opens, in a tab of its own. The HTML is shown at the width of a device, and as programs with dark colors ask for it.
 */
function HtmlView({ mail, again }: { mail: OpenMail; again: () => Promise<void> }) {
  const { width: chosen, is_dark } = useObservable(view_choice)
  const is_narrow = useMedia("(max-width: 40rem)") // there all of the page is a phone already
  const width = is_narrow && chosen === "phone" ? "fit" : chosen
  const place = useRef<HTMLDivElement>(null)
  const place_width = useWidth(place)
  /** The address that was shown when somebody pressed the button, since a press is for one look. */
  const [pressed, setPressed] = useState<string>()
  const [opened_at] = useState(() => performance.now())
  usePoll(RENEWAL_MILLISECONDS, () => {
    if (performance.now() - opened_at > RENEWAL_MILLISECONDS / 2) void again()
  })
  const { html_url } = mail
  if (html_url === null) return <p class="soft">This mail has no HTML.</p>
  const html = mail.html ?? ""
  const remote = remoteParts(mail.email_id === null ? html : withoutOwnPixel(html))
  const src = `${html_url}?scheme=${is_dark ? "dark" : "light"}`
  const pixels = WIDTHS.find(({ name }) => name === width)?.pixels
  // What is wider than the page is shown smaller, and whole.
  const scale = Math.min(1, pixels && place_width ? place_width / pixels : 1)
  return (
    <>
      <fieldset class="buttons">
        <legend class="unseen">Width and colors of the preview</legend>
        {WIDTHS.filter(({ name }) => name !== "phone" || !is_narrow).map(({ name, text }) => (
          <Button key={name} pressed={name === width} onClick={() => changeView({ width: name })}>
            {text}
          </Button>
        ))}
        <Button
          pressed={is_dark}
          onClick={() => {
            setPressed(undefined)
            changeView({ is_dark: !is_dark })
          }}
        >
          Dark
        </Button>
        {scale < 1 && <span class="soft">at {Math.floor(scale * 100)} %</span>}
      </fieldset>
      <RemoteHint remote={remote} is_loaded={pressed === src} onLoad={() => setPressed(src)} />
      <div class={is_dark ? "preview dark" : "preview"} ref={place}>
        <iframe
          title="HTML of the mail"
          sandbox="allow-popups allow-popups-to-escape-sandbox"
          referrerpolicy="no-referrer"
          src={pressed === src ? `${src}&images=remote` : src}
          style={{ width: pixels === undefined ? "100%" : `${pixels}px`, zoom: scale }}
        />
      </div>
    </>
  )
}

interface RemoteHintProps {
  remote: RemoteParts
  is_loaded: boolean
  onLoad: () => void
}

/** What the preview leaves to other servers. Its images are loaded when somebody wants them, and never by themselves. */
function RemoteHint({ remote, is_loaded, onLoad }: RemoteHintProps) {
  const missing = remoteText(remote)
  if (!missing) return null
  if (is_loaded)
    return <p class="hint">The server asked for the images. The sender may see that it did.</p>
  if (remote.images === 0) return <p class="hint">{missing}</p>
  return (
    <div class="remote">
      <p class="hint">{missing}</p>
      <Button onClick={onLoad}>Load images</Button>
    </div>
  )
}

/** The text as programs without HTML show it. Addresses open in a tab of their own, which learns nothing of the mail. */
function TextView({ mail: { text } }: { mail: OpenMail }) {
  const pieces = useMemo(() => textPieces(text ?? ""), [text])
  if (!text) return <p class="soft">This mail has no text.</p>
  return (
    <pre class="mail-text" {...REACHABLE}>
      {pieces.map((piece) =>
        piece.url === undefined ? (
          piece.text
        ) : (
          <a key={piece.start} href={piece.url} target="_blank" rel="noopener noreferrer">
            {piece.text}
          </a>
        ),
      )}
    </pre>
  )
}

const LINES_AT_ONCE = 1000

/** Behind them there are attachments, which nobody reads. */
const MOST_BYTES = 1_000_000

/** The mail as it came over the wire. */
function SourceView({ mail: { id } }: { mail: OpenMail }) {
  const load = useCallback(() => rawMail(id), [id])
  return <Loaded load={load}>{(bytes) => <Source id={id} bytes={bytes} />}</Loaded>
}

function Source({ id, bytes }: { id: string; bytes: Uint8Array }) {
  const [most, setMost] = useState(LINES_AT_ONCE)
  const lines = useMemo(
    () => sourceLines(new TextDecoder().decode(bytes.subarray(0, MOST_BYTES))),
    [bytes],
  )
  const hidden = lines.length - most
  const rest = bytes.length - MOST_BYTES
  return (
    <>
      <div class="buttons">
        <Button onClick={() => saveMail(id, bytes)}>Download .eml</Button>
      </div>
      <pre class="source" dir="ltr" {...REACHABLE}>
        {lines.slice(0, most).map(lineView)}
      </pre>
      {hidden > 0 && (
        <Button onClick={() => setMost(most + LINES_AT_ONCE)}>
          Show more: {hidden.toLocaleString()} lines
        </Button>
      )}
      {hidden <= 0 && rest > 0 && <p class="hint">{sizeText(rest)} more are in the download.</p>}
    </>
  )
}

const rawMail = (mail_id: string): Promise<Uint8Array> =>
  call("GET /v1/mailbox/{mail_id}/raw", { params: { mail_id } })

const saveMail = (id: string, bytes: Uint8Array): void =>
  saveBytes(bytes, `${id}.eml`, "message/rfc822")

export const downloadMail = async (id: string) => saveMail(id, await rawMail(id))

/** Lines have no name of their own, and never change their order. */
const lineView = ({ kind, name, text }: SourceLine, at: number) => (
  <span key={at} class={kind}>
    {name && <b>{name}</b>}
    {text}
    {"\n"}
  </span>
)

const TONES = { good: "good", warn: "look at it", plain: "fact" }

/** First what the headers say of the sender, then each field with its meaning. */
const HeadersView = ({ mail }: { mail: OpenMail }) => (
  <>
    <ul class="facts-list">
      {senderFacts(mail).map(({ name, text, tone }) => (
        <li key={`${name} ${text}`}>
          <b>{name}</b> <Badge tone={tone}>{TONES[tone]}</Badge>
          <br />
          <bdi>{text}</bdi>
        </li>
      ))}
    </ul>
    <h3>All header fields</h3>
    <dl class="headers">
      {explainHeaders(mail.headers).map(({ name, value, note }, at) => (
        <div class="pair" key={`${at} ${name}`}>
          <dt>
            <code>{name}</code>
          </dt>
          <dd>
            <bdi class="value">{value}</bdi>
            {note && <p class="hint">{note}</p>}
          </dd>
        </div>
      ))}
    </dl>
  </>
)

type Attachment = OpenMail["attachments"][number]

/** The files of a mail, with those that stand in its HTML. */
function FilesView({ mail: { id, attachments } }: { mail: OpenMail }) {
  const [error, setError] = useState<unknown>()
  return (
    <>
      <Trouble error={error} />
      <ul class="files">
        {attachments.map((file) => (
          <li key={file.id}>
            <Preview mail_id={id} file={file} />
            <div>
              <p class="file-name">
                <bdi>{nameOf(file)}</bdi>
              </p>
              <p class="hint">
                <bdi>{file.content_type}</bdi> · {sizeText(file.size)}
                {file.content_id && (
                  <>
                    {" "}
                    · the HTML shows it as <code>cid:{file.content_id}</code>
                  </>
                )}
              </p>
            </div>
            <Button
              label={`Download ${nameOf(file)}`}
              onClick={() => save(id, file).catch(setError)}
            >
              Download
            </Button>
          </li>
        ))}
      </ul>
    </>
  )
}

const nameOf = ({ filename, id }: Attachment) => filename ?? `file ${id}`

const bytesOf = (mail_id: string, { id }: Attachment): Promise<Uint8Array> =>
  call("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
    params: { mail_id, attachment_id: id },
  })

const save = async (mail_id: string, file: Attachment) =>
  saveBytes(await bytesOf(mail_id, file), nameOf(file), "application/octet-stream")

/** A file that is no image, or cannot be loaded, has its name and its size anyway. */
function Preview({ mail_id, file }: { mail_id: string; file: Attachment }) {
  const load = useCallback(() => imageOf(mail_id, file), [mail_id, file])
  const { value: image } = useLoaded(load)
  const url = useMemo(() => image && URL.createObjectURL(image), [image])
  useEffect(() => () => url && URL.revokeObjectURL(url), [url])
  if (url) return <img src={url} alt={`Preview of ${nameOf(file)}`} />
  return (
    <span class="no-preview" aria-hidden="true">
      {/\.(\w{1,4})$/.exec(nameOf(file))?.[1]?.toUpperCase() ?? "FILE"}
    </span>
  )
}

/** What may be an image; its bytes say whether it is one. */
const MAYBE_IMAGE = /^(image\/|application\/octet-stream)/i
const MOST_PREVIEW_BYTES = 5_000_000

async function imageOf(mail_id: string, file: Attachment): Promise<Blob | undefined> {
  if (!MAYBE_IMAGE.test(file.content_type) || file.size > MOST_PREVIEW_BYTES) return undefined
  const bytes = await bytesOf(mail_id, file)
  const type = imageType(bytes)
  return type === undefined ? type : new Blob([bytes as Uint8Array<ArrayBuffer>], { type })
}
