import { flag } from "../lib/field-flags"
import { secretOrFile } from "../lib/input"
import { deletes, type Resource, row } from "../lib/resource"
import { ago, wide } from "../lib/table"
import { disabling, environmentFlag } from "./applications"

const ALL = "/v1/auth/applications/{application_id}/oauth-providers"

/** Where users of an application sign in with an account that they have elsewhere. */
export const oauthResource: Resource = {
  noun: "applications oauth",
  about: "choose the providers whose accounts sign in",
  rows: [
    row("list <application>", `GET ${ALL}`, {
      about: "list the sign-in providers of an application, with the end of their secrets",
      columns: {
        PROVIDER: "provider",
        ENVIRONMENT: "environment",
        ENABLED: ({ enabled }) => (enabled ? "yes" : "no"),
        CLIENT: wide(({ client_id }) => client_id),
        CALLBACK: wide(({ callback_url }) => callback_url, "last"),
        CHANGED: ago(({ updated_at }) => updated_at),
      },
    }),
    row("set <application> <provider>", `PUT ${ALL}/{provider}`, {
      about: "set up google, apple, github, microsoft or oidc-NAME; stored secrets stay",
      example: [
        "--client-id 4711.example --client-secret @secret.txt",
        "--client-id com.example.app --team-id DEF123GHIJ --key-id ABC123DEFG --private-key @key.p8",
      ],
      note: "A secret that begins with @ is a file: --client-secret @secret.txt; @- is stdin.",
      ...disabling,
      flags: {
        enabled: false,
        environment: environmentFlag,
        client_id: "id of your client at the provider",
        client_secret: flag(["--client-secret <secret>", "its secret, or @file"], secretOrFile),
        scopes: "scope to ask for (default: those of a sign-in); may be repeated",
        issuer: "of oidc-NAME: address of the issuer",
        team_id: "of apple: id of the team",
        key_id: "of apple: id of the private key",
        private_key: flag(["--private-key <pem>", "of apple: its PEM, or @file"], secretOrFile),
      },
      aliases: { key_id: "key-id" },
      done: ({ provider, environment }) => `set up ${provider} in ${environment}`,
      brief: ({ provider }) => provider,
      after: ({ output }, { data: { callback_url } }) =>
        output.next(`give the provider this address: ${callback_url}`),
    }),
    row("rm <application> <provider>", `DELETE ${ALL}/{provider}`, {
      flags: { environment: environmentFlag },
      ...deletes((_, provider) => `Nobody will sign in at ${provider} any more.`),
      done: (_, [, provider]) => `deleted ${provider}`,
    }),
  ],
}
