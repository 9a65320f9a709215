DROP INDEX "subscriber_tags_by_subscriber";--> statement-breakpoint
DROP INDEX "subscriber_words_by_subscriber";--> statement-breakpoint
ALTER TABLE "subscriber_words" ALTER COLUMN "word" SET DATA TYPE text COLLATE "C";--> statement-breakpoint
ALTER TABLE "subscribers" ADD COLUMN "search_key" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "subscribers" ALTER COLUMN "search_key" DROP DEFAULT;--> statement-breakpoint
CREATE INDEX "topic_members_by_id" ON "topic_members" USING btree ("topic_id","subscriber_id");
