import { join } from "node:path"
import { readLines } from "./lines"

const PROGRAM = join(import.meta.dir, "oidc-provider.mjs")

interface OidcClient {
  client_id: string
  client_secret: string
  redirect_uri: string
}

/** `oidc-provider` of npm under Node: an issuer that nobody of us wrote. Its pages ask for a name and a consent. */
export async function oidcProvider({ client_id, client_secret, redirect_uri }: OidcClient) {
  const node = Bun.which("node")
  if (!node) throw new Error("oidc-provider runs under node, which is not installed")
  const child = Bun.spawn([node, PROGRAM, client_id, client_secret, redirect_uri], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  })
  const lines = readLines(child.stdout)
  const issuer = await lines.first((line) => line.startsWith("http://"))
  let rotations = 0
  return {
    issuer,
    async rotateKeys() {
      rotations++
      child.stdin.write(`${rotations}\n`)
      await child.stdin.flush()
      await lines.first((line) => line === `rotated ${rotations}`)
    },
    async [Symbol.asyncDispose]() {
      child.kill()
      await child.exited
    },
  }
}

const MOST_STEPS = 20

/**
 * Signs in at its pages with that name, as a browser would, and gives the consent. Resolves to what the redirect to
 * `redirect_uri` brings.
 */
export async function signInByPages(
  authorization_url: string,
  redirect_uri: string,
  login: string,
): Promise<Record<string, string>> {
  const cookies = new Map<string, string>()
  let url = authorization_url
  let form: Record<string, string> | undefined
  for (let step = 0; step < MOST_STEPS; step++) {
    if (url.startsWith(redirect_uri)) return Object.fromEntries(new URL(url).searchParams)
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ")
    const answer = await fetch(url, {
      ...{ redirect: "manual", headers: { cookie } },
      ...(form && { method: "POST", body: new URLSearchParams(form) }),
    })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const location = answer.headers.get("location")
    if (location) {
      url = new URL(location, url).href
      form = undefined
      continue
    }
    const page = await answer.text()
    const action = /action="([^"]+)"/.exec(page)?.[1]
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1]
    if (!action || !prompt) throw new Error(page)
    url = new URL(action, url).href
    form = prompt === "login" ? { prompt, login, password: "any" } : { prompt }
  }
  throw new Error("the sign-in at the issuer does not end")
}
