import { useCallback, useMemo, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { Waiting } from "../parts/empty"
import { Trouble } from "../parts/notice"
import { REACHABLE } from "../parts/reachable"
import { saveBytes } from "../save-file"
import { call } from "../transport"
import { useLoaded } from "../use-loaded"
import { sizeText } from "./describe"
import type { OpenMail } from "./mail-records"
import { type SourceLine, sourceLines } from "./source-lines"

const LINES_AT_ONCE = 1000

/** Behind them there are attachments, which nobody reads. */
const MOST_BYTES = 1_000_000

const linesOf = (bytes: Uint8Array | undefined): SourceLine[] =>
  bytes ? sourceLines(new TextDecoder().decode(bytes.subarray(0, MOST_BYTES))) : []

/** The mail as it came over the wire. */
export function SourceView({ mail: { id } }: { mail: OpenMail }) {
  const [most, setMost] = useState(LINES_AT_ONCE)
  const read = useCallback(() => rawMail(id), [id])
  const { value: bytes, error, again } = useLoaded(read)
  const lines = useMemo(() => linesOf(bytes), [bytes])
  if (error !== undefined) return <Trouble error={error} onRetry={again} />
  if (!bytes) return <Waiting />
  const hidden = lines.length - most
  const rest = bytes.length - MOST_BYTES
  return (
    <>
      <div class="buttons">
        <Button onClick={() => saveBytes(bytes, `${id}.eml`, "message/rfc822")}>
          Download .eml
        </Button>
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
      <Commands
        belfry={`belfry mailbox raw ${id} > mail.eml`}
        request={requestOf("GET /v1/mailbox/{mail_id}/raw", { params: { mail_id: id } })}
      />
    </>
  )
}

/** The bytes of the mail. */
export const rawMail = (mail_id: string): Promise<Uint8Array> =>
  call("GET /v1/mailbox/{mail_id}/raw", { params: { mail_id } })

/** Lines have no name of their own, and never change their order. */
const lineView = ({ kind, name, text }: SourceLine, at: number) => (
  <span key={at} class={kind}>
    {name && <b>{name}</b>}
    {text}
    {"\n"}
  </span>
)
