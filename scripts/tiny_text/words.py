"""Names and small facts of an invented coast, from which the example's text is made."""

HARBOURS = [
    ("Aldmouth", "a river mouth", "grain"), ("Brackwater", "a wide bay", "timber"),
    ("Cormer", "a rocky cove", "slate"), ("Dunsea", "a spit of sand", "herring"),
    ("Eastrick", "two stone piers", "coal"), ("Fairholm", "a small island", "wool"),
    ("Gullane Point", "a long headland", "salt"), ("Hollin Reach", "a slow estuary", "bricks"),
    ("Ironwick", "a deep fjord", "iron ore"), ("Kelby", "a quiet lagoon", "oysters"),
    ("Lowmoor", "a marsh behind a bar", "reeds and peat"), ("Marram", "a beach of shingle", "crab"),
    ("Netherport", "the bend of a canal", "cheese"), ("Overby", "a cliff with a lift", "granite"),
    ("Penhallow", "a hook of land", "tin"), ("Quarrel Bay", "a bay open to the west", "nothing much"),
    ("Ravensey", "a drowned valley", "apples"), ("Stanmere", "a lake behind a lock", "machines"),
]

SHIPS = [
    ("Marigold", "a coaster", 4.2, 9), ("Patience", "a ketch", 2.6, 6),
    ("Northern Star", "a bulk carrier", 8.8, 12), ("Kittiwake", "a pilot boat", 1.6, 18),
    ("Old Margaret", "a steam tug", 3.1, 10), ("Silver Dawn", "a trawler", 3.9, 10),
    ("Halcyon", "a ferry", 3.4, 16), ("Prudence", "a dredger", 5.0, 8),
    ("Wayfarer", "a schooner", 3.6, 8), ("Constant Ada", "a lightship", 3.0, 0),
    ("Heron", "a survey launch", 1.2, 20), ("Bluebell", "a barge", 1.9, 6),
    ("Grey Goose", "a tanker", 9.6, 13), ("Temperance", "a brig", 4.4, 7),
    ("Saint Anne", "a lifeboat", 1.4, 17), ("Tern", "a cutter", 2.2, 9),
]

PEOPLE = [
    ("Edda", "she", "her", "the pilot"), ("Jonas", "he", "his", "the mate"),
    ("Mirren", "she", "her", "the harbour master"), ("Tobias", "he", "his", "the cook"),
    ("Ines", "she", "her", "the engineer"), ("Old Wilf", "he", "his", "the lamp keeper"),
    ("Sunniva", "she", "her", "the skipper"), ("Bram", "he", "his", "the net mender"),
    ("Agnes", "she", "her", "the surveyor"), ("Piet", "he", "his", "the ferryman"),
    ("Rosa", "she", "her", "the apprentice"), ("Lachlan", "he", "his", "the rigger"),
]

CREW = [p for p in PEOPLE if p[3] in ("the pilot", "the mate", "the cook", "the engineer",
                                         "the skipper", "the apprentice", "the rigger")]

WINDS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]
SEAS = ["calm", "smooth", "slight", "moderate", "rough"]
SEA_OF_FORCE = {2: "smooth", 3: "slight", 4: "moderate", 5: "rough", 6: "very rough"}
SKIES = ["clear", "hazy", "overcast", "full of broken cloud", "grey with showers"]
BIRDS = ["terns", "gulls", "cormorants", "oystercatchers", "gannets", "curlews"]
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
           "eleven", "twelve"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
