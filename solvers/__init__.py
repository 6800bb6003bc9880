"""Who answers, who judges, who proves: engines, judges and checks, a folder for each kind of question."""
