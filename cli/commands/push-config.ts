import type { Components } from "../../src/client/components"
import { providerForms } from "../../src/client/provider-forms"
import { deletes, row } from "../lib/resource"
import { recordText } from "../lib/table"
import type { Paint } from "../lib/terminal"
import { accessOptions, credentialsOf } from "./providers"

const forms = providerForms.filter(({ channel }) => channel === "push")

/** Each service by its name, with the last four characters of its secrets. */
function configsText(configs: Components["PushConfig"], paint: Paint): string {
  const parts = Object.entries(configs).map(([name, config]) => {
    const { status, last_error, credentials } = config ?? {}
    const text = config ? recordText({ status, last_error, ...credentials }, paint) : "not set"
    return `${paint.bold(name)}\n${text}`
  })
  return parts.join("\n\n")
}

export const pushConfigRows = [
  row("get", "GET /v1/push/config", {
    about: "show the push services of the project, and the last 4 characters of their secrets",
    shown: configsText,
  }),
  row("set <provider>", "PUT /v1/push/config/{provider}", {
    about: "set the credentials of apns, fcm or webpush, in the place of those before",
    word: ["apns", "fcm", "webpush"],
    example: forms.map(({ example = "" }) => example),
    note: "A value that begins with @ is a file: --private-key @key.p8; @- is stdin.",
    flags: Object.fromEntries(
      forms.flatMap(({ fields }) => Object.keys(fields)).map((name) => [name, false]),
    ),
    options: accessOptions(forms),
    input: (options, [provider = ""], context) => credentialsOf(context, provider, options),
    done: ({ provider, id }) => `${provider} (${id})`,
    next: (_, [provider = ""]) => `push config test ${provider}`,
  }),
  row("rm <provider>", "DELETE /v1/push/config/{provider}", {
    about: "delete the credentials of a push service",
    word: "apns",
    ...deletes((provider) => `Devices of ${provider} will get no push messages.`),
  }),
  row("test <provider>", "POST /v1/push/config/{provider}/test", {
    about: "ask a push service whether it takes the credentials, or send to --device-id",
    word: "apns",
    example: ["", "--device-id phone-1"],
    flags: { device_id: "send a message to this device" },
    done: ({ detail }) => detail,
  }),
]
