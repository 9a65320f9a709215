import { LOCAL } from "../../src/audit-log/audit-log"
import { PROVIDERS } from "../../src/channels"
import * as configs from "../../src/providers/configs"
import { deliverTexts } from "../harness/delivery"
import type { TestProject, TestService } from "../harness/service"

/** The project has a provider of texts, for these countries or for all. */
export const setTexts = (
  { store, parts }: TestService,
  { account_id, project_id }: TestProject,
  allowed_countries: string[] = [],
) =>
  store.tx((tx) =>
    configs.set(
      tx,
      { account_id, project_id },
      {
        ...{ kind: "sms_provider", name: "texts", priority: 100, provider: "log" },
        ...{ settings: { allowed_countries }, credentials: {} },
      },
      { secrets: parts.secrets, table: PROVIDERS, by: LOCAL },
    ),
  )

/** Texts leave while the answer of `asked` is awaited. */
export async function whileSending<Answer>(
  service: TestService,
  asked: Promise<Answer>,
  meaning: "sent" | "refused" = "sent",
): Promise<Answer> {
  let answered = false
  const over = asked.finally(() => {
    answered = true
  })
  await deliverTexts(service, meaning, async () => answered)
  return over
}
