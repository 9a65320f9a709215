import type { EnvironmentSettings } from "../../../src/auth/environment-settings"
import { randomText, s256 } from "../../../src/auth/social/oauth-flows"
import type { accountIssuer, IssuedAccount } from "../../fakes/account-issuer"
import { newApplication } from "../../harness/application"
import type { Client, Reply } from "../../harness/client"
import type { TestService } from "../../harness/service"

export const BACK = "https://app.example.test/back?shop=1"

type Issuer = Awaited<ReturnType<typeof accountIssuer>>
type App = Pick<Client, "get" | "post">

/** The answer of a redirect, as the application reads it. */
export const landedAt = ({ headers }: Pick<Reply, "headers">): Record<string, string> =>
  Object.fromEntries(new URL(headers.get("location") ?? BACK).searchParams)

/** An application whose users sign in with accounts of these issuers. */
export async function accountShop(
  service: TestService,
  issuers: Record<string, Issuer>,
  settings: Partial<EnvironmentSettings> = {},
) {
  service.settings["auth.oauth.allow_private"] = ["127.0.0.1"]
  const project = await service.project()
  const application = await newApplication(service, project, { settings, redirect_urls: [BACK] })
  const path = `/v1/auth/applications/${application.id}/oauth-providers`
  for (const environment of ["live", "test"])
    for (const [provider, { url, client }] of Object.entries(issuers)) {
      const fields = { client_id: client.id, client_secret: client.secret, issuer: url }
      const body = { environment, enabled: true, ...fields }
      const put = await project.call("PUT", `${path}/${provider}`, { body })
      if (put.status !== 200) throw new Error(put.text)
    }

  /** A browser comes back from the provider. */
  const arrive = (provider: string, answer: Record<string, string>, cookie = "") =>
    service.anybody.get(`/v1/auth/oauth/${provider}/callback?${new URLSearchParams(answer)}`, {
      cookie,
    })

  const begin = async (provider: string, query: Record<string, string> = {}, app: App = live) => {
    const asked = new URLSearchParams({ redirect_url: BACK, ...query })
    return app.get(`/v1/auth/oauth/${provider}/authorize?${asked}`)
  }

  const exchange = (provider: string, body: object, app: App = live) =>
    app.post(`/v1/auth/oauth/${provider}/callback`, body)

  const live = application.app()
  /** As far as the redirect: what the application exchanges. */
  async function land(account: IssuedAccount, provider = "oidc-one", app: App = live) {
    const code_verifier = randomText()
    const begun = await begin(provider, { code_challenge: s256(code_verifier) }, app)
    const issuer = issuers[provider] as Issuer
    const there = issuer.consent(begun.body.data.authorization_url, account)
    const { code = "", state = "" } = landedAt(await arrive(provider, there))
    return { code, state, code_verifier }
  }

  return {
    ...{ project, application, live, begin, arrive, exchange, path, land },
    /** A whole sign-in. */
    async signIn(account: IssuedAccount, provider = "oidc-one") {
      return exchange(provider, await land(account, provider))
    },
  }
}
