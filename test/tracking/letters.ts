import { simpleParser } from "mailparser"
import { deliverAll } from "../harness/delivery"
import { mail } from "../harness/mail"
import type { TestProject, TestService } from "../harness/service"

/** A program that a person uses. */
export const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

/** A mail that was delivered, as its recipient has it. */
export interface ReceivedLetter {
  id: string
  html: string
  text: string
  /** Path of the pixel; undefined where there is none. */
  pixel: string | undefined
  /** Paths of the tracked links, in their order. */
  links: string[]
}

const PIXEL = /<img src="https?:\/\/[^/"]+(\/t\/o\/[^"]+)"/
const LINK = /href=["']?https?:\/\/[^/"'\s>]+(\/t\/c\/[^"'\s>]+)/g

/** What an email says that leaves its tracking to the project and the account. */
export const UNDECIDED = { track_opens: null, track_clicks: null }

/** Sends an email that is tracked, unless `fields` say otherwise, and delivers everything that waits. */
export async function receive(
  service: TestService,
  project: TestProject,
  fields: Record<string, unknown>,
): Promise<ReceivedLetter> {
  const { body } = await project.post(
    "/v1/emails",
    mail({ track_opens: true, track_clicks: true, ...fields }),
  )
  const handed = await deliverAll(service)
  const own = handed.find(({ message_id }) => message_id === body.id)
  const parsed = await simpleParser(Buffer.from(own?.raw ?? ""))
  const html = parsed.html || ""
  return {
    id: body.id,
    html,
    text: parsed.text ?? "",
    pixel: PIXEL.exec(html)?.[1],
    links: [...html.matchAll(LINK)].map(([, path = ""]) => path),
  }
}
