import { sizeOf } from "./recent-contents"
import type { Envelope } from "./tables"

interface StoringMessage {
  project_id: string
  content: unknown
  envelope: Envelope | null
}

/** What a new message stores: its content, and its part of the files that it names. */
export interface StoredSize {
  content: number
  bytes: number
}

/** Of messages that enter together. A file that several of them name counts once, in equal parts. */
export function storedSizes(list: StoringMessage[]): StoredSize[] {
  const users = new Map<string, number>()
  const named = list.map(filesOf)
  for (const [at, files] of named.entries()) {
    for (const file of files) {
      const key = `${list[at]?.project_id} ${file.sha256}`
      users.set(key, (users.get(key) ?? 0) + 1)
    }
  }
  return list.map((message, at) => {
    const content = sizeOf(message.content)
    const files = (named[at] ?? []).map(({ sha256, size }) =>
      Math.ceil(size / (users.get(`${message.project_id} ${sha256}`) ?? 1)),
    )
    return { content, bytes: files.reduce((sum, size) => sum + size, content) }
  })
}

interface SizedFile {
  sha256: string
  size: number
}

const NO_FILES: SizedFile[] = []

/** Each once. Attachments of mail that was submitted as bytes lie within those bytes. */
function filesOf({ envelope, content }: StoringMessage): SizedFile[] {
  const { submitted, attachments = NO_FILES } = envelope ?? {}
  const of_content = isFile(content) ? [{ sha256: content.file, size: content.size }] : NO_FILES
  if (submitted) {
    const { sha256, size } = submitted
    return sha256 === null ? NO_FILES : [{ sha256, size }]
  }
  if (attachments.length === 0) return of_content
  return [...new Map([...of_content, ...attachments].map((file) => [file.sha256, file])).values()]
}

/** Long texts are a file, which the content names in their place. */
const isFile = (content: unknown): content is { file: string; size: number } =>
  typeof content === "object" && content !== null && "file" in content && "size" in content
