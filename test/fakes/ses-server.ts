import { createHash, createHmac } from "node:crypto"

export interface SesRequest {
  method: string
  path: string
  headers: Headers
  body: string
  /** By the rules of AWS Signature Version 4, computed here once more. */
  is_signed: boolean
  /** `<date>/<region>/<service>/aws4_request`, and which headers are signed. */
  scope: string
  signed_headers: string[]
}

interface SesAnswer {
  status: number
  body: object
  headers?: Record<string, string>
}

type Answer = (request: SesRequest) => SesAnswer | undefined | Promise<SesAnswer>

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest()

/** Answers as the SES API does, and keeps every request with a judgement of its signature. */
export function sesServer(secret_access_key: string, answer: Answer = () => undefined) {
  const requests: SesRequest[] = []
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const asked = await judged(request, secret_access_key)
      requests.push(asked)
      const usual: SesAnswer = { status: 200, body: { MessageId: `ses-${requests.length}` } }
      const { status, body, headers } = (await answer(asked)) ?? usual
      return Response.json(body, { status, ...(headers && { headers }) })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  }
}

const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=[^/]+\/([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html, step by step. */
async function judged(request: Request, secret: string): Promise<SesRequest> {
  const { method, headers } = request
  const url = new URL(request.url)
  const body = await request.text()
  const authorization = headers.get("authorization") ?? ""
  const [, scope = "", names = "", signature] = AUTHORIZATION.exec(authorization) ?? []
  const signed_headers = names.split(";")
  const lines = signed_headers.map((name) => `${name}:${(headers.get(name) ?? "").trim()}\n`)
  const path = url.pathname.split("/").map(encodeURIComponent).join("/")
  const canonical = [method, path, "", lines.join(""), names, sha256(body)].join("\n")
  const moment = headers.get("x-amz-date") ?? ""
  const text = ["AWS4-HMAC-SHA256", moment, scope, sha256(canonical)].join("\n")
  const key = scope
    .split("/")
    .reduce<string | Buffer>((so_far, part) => hmac(so_far, part), `AWS4${secret}`)
  const is_signed = hmac(key, text).toString("hex") === signature
  return { method, path: url.pathname, headers, body, is_signed, scope, signed_headers }
}
