import { useEffect, useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { imageType } from "../../lib/image-type"
import { Button } from "../parts/button"
import { Commands } from "../parts/commands"
import { Trouble } from "../parts/notice"
import { saveBytes } from "../save-file"
import { call } from "../transport"
import { sizeText } from "./describe"
import type { OpenMail } from "./mail-records"

type Attachment = OpenMail["attachments"][number]

/** What may be an image; its bytes say whether it is one. */
const MAYBE_IMAGE = /^(image\/|application\/octet-stream)/i
const MOST_PREVIEW_BYTES = 5_000_000

/** The files of a mail, with those that stand in its HTML. */
export function AttachmentsView({ mail: { id, attachments } }: { mail: OpenMail }) {
  const [error, setError] = useState<unknown>()
  return (
    <>
      {error !== undefined && <Trouble error={error} />}
      <ul class="files">
        {attachments.map((file) => (
          <li key={file.id}>
            <Preview mail_id={id} file={file} />
            <div>
              <p class="file-name">
                <bdi>{nameOf(file)}</bdi>
              </p>
              <p class="hint">
                {file.content_type} · {sizeText(file.size)}
                {file.content_id && (
                  <>
                    {" "}
                    · stands in the HTML as <code>cid:{file.content_id}</code>
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
      <Commands
        belfry={`belfry mailbox attachments ${id}`}
        request={requestOf("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
          params: { mail_id: id, attachment_id: attachments[0]?.id ?? "0" },
        })}
      />
    </>
  )
}

const nameOf = ({ filename, id }: Attachment) => filename ?? `file ${id}`

/** `PDF`: what stands in the place of a preview. */
const endingOf = (name: string) => /\.(\w{1,4})$/.exec(name)?.[1]?.toUpperCase() ?? "FILE"

const bytesOf = (mail_id: string, { id }: Attachment): Promise<Uint8Array> =>
  call("GET /v1/mailbox/{mail_id}/attachments/{attachment_id}", {
    params: { mail_id, attachment_id: id },
  })

const save = async (mail_id: string, file: Attachment) =>
  saveBytes(await bytesOf(mail_id, file), nameOf(file), "application/octet-stream")

function Preview({ mail_id, file }: { mail_id: string; file: Attachment }) {
  const [url, setUrl] = useState<string>()
  const is_shown = MAYBE_IMAGE.test(file.content_type) && file.size <= MOST_PREVIEW_BYTES
  useEffect(() => {
    if (!is_shown) return undefined
    let made: string | undefined
    let is_over = false
    const show = (bytes: Uint8Array) => {
      const type = imageType(bytes)
      if (is_over || !type) return
      made = URL.createObjectURL(new Blob([bytes as Uint8Array<ArrayBuffer>], { type }))
      setUrl(made)
    }
    bytesOf(mail_id, file).then(show, () => undefined) // the name and the size stand there anyway
    return () => {
      is_over = true
      if (made) URL.revokeObjectURL(made)
    }
  }, [mail_id, file, is_shown])
  if (url) return <img src={url} alt={`Preview of ${nameOf(file)}`} />
  return (
    <span class="no-preview" aria-hidden="true">
      {endingOf(nameOf(file))}
    </span>
  )
}
