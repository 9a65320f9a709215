import { ApiError } from "../core/errors"
import { type AddressPolicy, NetError, type NetErrorKind, request } from "../core/net"
import { invalid } from "../http/problems"
import { Turns } from "../lib/permits"
import { vetForm } from "../webhooks/endpoint-url"
import {
  type AttachedInput,
  type GivenFile,
  isRemote,
  MEDIA_TYPE,
  type RemoteFile,
} from "./attachments"

const FETCH_MS = 10_000
const MAX_FILE_BYTES = 10_485_760

/** So many at once, so that a request holds few files that it may not keep. */
const AT_ONCE = 3

/** From where files may be fetched. */
export interface FileRules extends AddressPolicy {
  /** PEM of the authorities to trust instead of the well-known ones. */
  ca?: string
  /** Of one file; 10 s without it. */
  timeout_ms?: number
}

/** For whom files are fetched. */
interface Fetching {
  project_id: string
  rules: FileRules
  /** Says when nobody waits for the answer any more. */
  signal: AbortSignal | undefined
}

/**
 * The same attachments with every file at hand: those that are named by a URL are fetched now. When
 * they are too much for a message already, the rest is left out. Throws `invalid_url` for what cannot
 * be fetched, and the signal's reason.
 */
export async function fetchFiles(files: AttachedInput[], fetching: Fetching): Promise<GivenFile[]> {
  if (!files.some(isRemote)) return files as GivenFile[]
  const { project_id, rules, signal } = fetching
  return inTurn(project_id, async () => {
    const found: GivenFile[] = []
    for (let at = 0; at < files.length && bytesOf(found) <= MAX_FILE_BYTES; at += AT_ONCE) {
      signal?.throwIfAborted()
      const some = files.slice(at, at + AT_ONCE)
      found.push(...(await Promise.all(some.map((file) => atHand(file, rules)))))
    }
    return found
  })
}

const bytesOf = (files: GivenFile[]) => files.reduce((sum, { bytes }) => sum + bytes.length, 0)

/** Messages of one project that wait for their files at the same time: files fill the memory. */
const MESSAGES_AT_ONCE = 2

const lines = new Map<string, { turns: Turns; waiting: number }>()

async function inTurn<Result>(project_id: string, work: () => Promise<Result>): Promise<Result> {
  const line = lines.get(project_id) ?? { turns: new Turns(MESSAGES_AT_ONCE), waiting: 0 }
  lines.set(project_id, line)
  line.waiting += 1
  const end = await line.turns.take()
  try {
    return await work()
  } finally {
    end()
    line.waiting -= 1
    if (line.waiting === 0) lines.delete(project_id)
  }
}

const atHand = (file: AttachedInput, rules: FileRules): GivenFile | Promise<GivenFile> =>
  isRemote(file) ? fetchFile(file, rules) : file

async function fetchFile(file: RemoteFile, rules: FileRules): Promise<GivenFile> {
  const { url, path, filename, content_id } = file
  vetPath(url, path)
  const { status, headers, body, truncated } = await ask(url, path, rules)
  if (status !== 200)
    throw refusal(path, `The server of this URL answered ${status} instead of 200.`)
  if (truncated) throw refusal(path, `The file has more than ${MAX_FILE_BYTES} bytes.`)
  const told = headers.get("content-type")?.trim() ?? ""
  const fallback = MEDIA_TYPE.test(told) ? told : "application/octet-stream"
  return { filename, content_id, content_type: file.content_type ?? fallback, bytes: body }
}

/** The rules of a webhook's URL, under the name of this field. */
function vetPath(url: string, path: string) {
  try {
    vetForm(url, { require_https: true })
  } catch (error) {
    throw error instanceof ApiError ? refusal(path, error.message) : error
  }
}

async function ask(url: string, path: string, { timeout_ms = FETCH_MS, ...rules }: FileRules) {
  try {
    return await request({ url, ...rules, timeout_ms, capture_bytes: MAX_FILE_BYTES })
  } catch (error) {
    if (!(error instanceof NetError)) throw error
    throw refusal(path, REASONS[error.kind])
  }
}

/** Not the words of our network: they would tell a stranger what stands behind it. */
const REASONS: Record<NetErrorKind, string> = {
  invalid_url: "The URL cannot be used.",
  dns: "The host of this URL has no address.",
  blocked_address: "The URL leads to an address that is not allowed.",
  timeout: "The server of this URL did not send the file in time.",
  tls: "The host of this URL has no valid TLS certificate.",
  connection: "The host of this URL cannot be reached.",
}

const refusal = (path: string, message: string) => invalid(path, "invalid_url", message)
