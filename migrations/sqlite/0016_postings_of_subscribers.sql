CREATE TABLE `subscriber_postings` (
	`project_id` blob NOT NULL,
	`term` text NOT NULL,
	`first` integer NOT NULL,
	`numbers` blob NOT NULL,
	PRIMARY KEY(`project_id`, `term`, `first`)
);
