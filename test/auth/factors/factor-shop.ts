import { generate } from "otplib"
import type { NewEndUser } from "../../../src/auth/end-users"
import type { EnvironmentSettings } from "../../../src/auth/environment-settings"
import { millis } from "../../../src/core/time"
import { newApplication, signedUp, type TestUser } from "../../harness/application"
import type { TestService } from "../../harness/service"
import { asUser, signInAgain } from "../signed-up"
import { eventsOf } from "../told-of"

/** The code that an authenticator app shows, so many steps of 30 seconds away. */
export const appCode = (secret: string, steps = 0): Promise<string> =>
  generate({ secret, epoch: Math.floor(millis() / 1000) + steps * 30 })

/** An application whose users have second factors. */
export async function factorShop(
  service: TestService,
  settings: Partial<EnvironmentSettings> = {},
) {
  const project = await service.project()
  const application = await newApplication(service, project, { settings })
  const app = application.app()
  const mfa = (path: string, body: object) => app.post(`/v1/auth/mfa/${path}`, body)
  const user = (wanted: NewEndUser = {}) => signedUp(service, application, wanted)
  /** The question for the second factor, after the first. */
  const challenge = async (id: string) => {
    const answer = await signInAgain(service, application, id)
    const awaited = answer as unknown as { mfa_challenge: { token: string; methods: string[] } }
    return { challenge_token: awaited.mfa_challenge.token, methods: awaited.mfa_challenge.methods }
  }
  return {
    project,
    application,
    mfa,
    user,
    challenge,
    /** Another session of the user, past every second factor. */
    otherSession: async (id: string) =>
      asUser(service, await signInAgain(service, application, id, { amr: ["pwd", "mfa"] })),
    told: async () =>
      (await eventsOf(service, project)).map(({ type, metadata: { mfa_method } }) =>
        mfa_method ? `${type} ${mfa_method}` : type,
      ),
    /** A user with an authenticator app. */
    withApp: async (wanted: NewEndUser = {}) => {
      const person = await user(wanted)
      const { secret, backup_codes } = await enrolApp(person)
      return { person, secret, backup_codes, id: person.id }
    },
  }
}

export async function enrolApp(person: Pick<TestUser, "post">) {
  const begun = await person.post("/v1/auth/mfa/enroll", {})
  const { secret, backup_codes } = begun.body.data as { secret: string; backup_codes: string[] }
  const code = await appCode(secret)
  const verified = await person.post("/v1/auth/mfa/verify-enrollment", { code })
  if (verified.status !== 200) throw new Error("the app was not enrolled")
  return { secret, backup_codes }
}
