import { type EmailChannelParts, emailChannel } from "./emails/channel"
import type { Channel } from "./messages/channel"
import type { Channels } from "./messages/pipeline"

/** Every channel there is. A message can only be accepted for one that is built. */
export const channelTable = (email: EmailChannelParts): Channels => ({
  email: emailChannel(email),
  push: absent,
  sms: absent,
  in_app: absent,
})

const absent: Channel = {
  deliver: async ({ channel }) => {
    throw new Error(`There is no ${channel} channel.`)
  },
}
