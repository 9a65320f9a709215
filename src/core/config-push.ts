import { folder, key, optional, webUrl } from "./config-kinds"

/** The services that send push messages. */
export const pushKeys = {
  "providers.apns.endpoint": optional(
    webUrl,
    "URL of the APNs server, for both environments. Without it, Apple's server of the environment is used.",
  ),
  "providers.apns.ca": optional(
    folder,
    "PEM file of the certificate authority to trust for APNs. Without it, the well-known authorities are trusted.",
  ),
  "providers.fcm.endpoint": key(
    webUrl,
    "https://fcm.googleapis.com",
    "URL of the API of Firebase Cloud Messaging.",
  ),
  "providers.fcm.token_endpoint": key(
    webUrl,
    "https://oauth2.googleapis.com/token",
    "URL where service accounts get access tokens for Firebase Cloud Messaging.",
  ),
}
