CREATE TABLE "inbound_contents" (
	"inbound_id" uuid PRIMARY KEY NOT NULL,
	"content" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inbound_emails" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"project_id" uuid NOT NULL,
	"domain" text NOT NULL,
	"to_email" text NOT NULL,
	"from_email" text,
	"from_name" text,
	"subject" text,
	"rfc_message_id" text,
	"kind" text NOT NULL,
	"status" text NOT NULL,
	"thread_id" uuid,
	"in_reply_to" text,
	"replied_to_message_id" uuid,
	"mailbox_hash" text,
	"auto_submitted" text,
	"verified" boolean,
	"spf_verdict" text,
	"dkim_verdict" text,
	"dmarc_verdict" text,
	"arc_verdict" text,
	"parse_error" boolean NOT NULL,
	"size" bigint NOT NULL,
	"raw_sha256" text NOT NULL,
	"session" text NOT NULL,
	"parsed" text,
	"route_id" uuid,
	"event_id" uuid,
	"created_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "inbound_files" (
	"sha256" text NOT NULL,
	"inbound_id" uuid NOT NULL,
	CONSTRAINT "inbound_files_sha256_inbound_id_pk" PRIMARY KEY("sha256","inbound_id")
);
--> statement-breakpoint
CREATE TABLE "inbound_routes" (
	"id" uuid PRIMARY KEY NOT NULL,
	"project_id" uuid NOT NULL,
	"match_to" text NOT NULL,
	"action" text NOT NULL,
	"target" text,
	"priority" bigint NOT NULL,
	"created_at" bigint NOT NULL,
	"updated_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "messages" ADD COLUMN "thread_id" uuid;--> statement-breakpoint
ALTER TABLE "inbound_contents" ADD CONSTRAINT "inbound_contents_inbound_id_inbound_emails_id_fk" FOREIGN KEY ("inbound_id") REFERENCES "public"."inbound_emails"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "inbound_emails_by_project" ON "inbound_emails" USING btree ("project_id","id");--> statement-breakpoint
CREATE INDEX "inbound_emails_by_recipient" ON "inbound_emails" USING btree ("project_id","to_email","id");--> statement-breakpoint
CREATE INDEX "inbound_emails_by_sender" ON "inbound_emails" USING btree ("project_id","from_email","id");--> statement-breakpoint
CREATE INDEX "inbound_emails_by_kind" ON "inbound_emails" USING btree ("project_id","kind","id");--> statement-breakpoint
CREATE INDEX "inbound_emails_by_thread" ON "inbound_emails" USING btree ("project_id","thread_id","id");--> statement-breakpoint
CREATE INDEX "inbound_emails_by_message_id" ON "inbound_emails" USING btree ("project_id","rfc_message_id");--> statement-breakpoint
CREATE INDEX "inbound_files_by_mail" ON "inbound_files" USING btree ("inbound_id");--> statement-breakpoint
CREATE UNIQUE INDEX "inbound_routes_by_match" ON "inbound_routes" USING btree ("project_id","match_to");--> statement-breakpoint
CREATE INDEX "messages_by_message_id" ON "messages" USING btree ("project_id","rfc_message_id") WHERE source = 'smtp';